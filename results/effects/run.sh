# The curves of this study: bash results/effects/run.sh [FOLDER], where FOLDER is what to write to.
set -e
study=results/effects folder=${1:-tuning/effects}
search() {  # a search's part of search.yaml, as a file of its own
  mkdir -p $folder/search
  python results/records.py search effects $1 > $folder/search/$1.yaml
  echo $folder/search/$1.yaml
}
wide="[1,5,10,20,50,100,200,500]"   # the appendix's figure
for dataset in gowalla yelp2018; do
  tune="recbole-hns tune --model=MF --dataset=$dataset --config_files=$study/settings.yaml --seeds=0 --storage=$folder"
  $tune --sampler=dns       --search=$(search M)   --name=$dataset-M
  $tune --sampler=dns       --search=$(search N)   --name=$dataset-N --topk=$wide
  $tune --sampler=softmax_v --search=$(search rho) --name=$dataset-rho
done
recbole-hns report $folder/*-M $folder/*-N $folder/*-rho --output=$folder/report --title="The effect of hardness"
recbole-hns report $folder/*-N --output=$folder/report-wide --title="The effect of N on a wide range of K"
