# Every search of this study: bash results/gowalla-mf-reg/run.sh [FOLDER], where FOLDER is what to write to.
set -e
study=results/gowalla-mf-reg folder=${1:-tuning/gowalla-mf-reg}
search() {  # a search's part of search.yaml, as a file of its own
  mkdir -p $folder/search
  python results/records.py search gowalla-mf-reg $1 > $folder/search/$1.yaml
  echo $folder/search/$1.yaml
}
tune="recbole-hns tune --model=MF --dataset=gowalla --config_files=$study/settings.yaml --refit --storage=$folder"
$tune --sampler=dns       --search=$(search dns)       --name=dns
$tune --sampler=softmax_v --search=$(search softmax_v) --name=softmax_v
recbole-hns report $folder --output=$folder/report --title="MF on Gowalla, reg_weight" --metrics=ndcg@50,recall@50
