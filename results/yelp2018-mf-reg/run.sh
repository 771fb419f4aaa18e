# Every search of this study: bash results/yelp2018-mf-reg/run.sh [FOLDER], where FOLDER is what to write to.
set -e
study=results/yelp2018-mf-reg folder=${1:-tuning/yelp2018-mf-reg}
search() {  # a search's part of search.yaml, as a file of its own
  mkdir -p $folder/search
  python results/records.py search yelp2018-mf-reg $1 > $folder/search/$1.yaml
  echo $folder/search/$1.yaml
}
tune="recbole-hns tune --model=MF --dataset=yelp2018 --config_files=$study/settings.yaml --refit --storage=$folder"
$tune --sampler=softmax_v --search=$(search softmax_v) --name=softmax_v
recbole-hns report $folder --output=$folder/report --title="MF on yelp2018, reg_weight" --metrics=recall@20,ndcg@20
