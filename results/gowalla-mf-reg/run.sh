# Every search of this study: bash results/gowalla-mf-reg/run.sh [FOLDER], where FOLDER is what to write to.
set -e
study=results/gowalla-mf-reg folder=${1:-tuning/gowalla-mf-reg}
tune="recbole-hns tune --model=MF --dataset=gowalla --config_files=$study/settings.yaml --refit --storage=$folder"
$tune --sampler=dns       --search=$study/search/dns.yaml       --name=dns
$tune --sampler=softmax_v --search=$study/search/softmax_v.yaml --name=softmax_v
recbole-hns report $folder --output=$folder/report --title="MF on Gowalla, reg_weight" --metrics=ndcg@50,recall@50
