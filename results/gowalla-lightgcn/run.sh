# Every search of this study: bash results/gowalla-lightgcn/run.sh [FOLDER], where FOLDER is what to write to.
set -e
study=results/gowalla-lightgcn folder=${1:-tuning/gowalla-lightgcn}
tune="recbole-hns tune --model=LightGCN --dataset=gowalla --config_files=$study/settings.yaml --refit --storage=$folder"
$tune --sampler=dns       --search=$study/search/dns.yaml       --name=dns
$tune --sampler=softmax_v --search=$study/search/softmax_v.yaml --name=softmax_v
$tune --sampler=uniform   --search=$study/search/uniform.yaml   --name=uniform
recbole-hns report $folder --output=$folder/report --title="LightGCN on Gowalla" --metrics=ndcg@50,recall@50
