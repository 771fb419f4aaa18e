# Every search of this study: bash results/gowalla-mf/run.sh [FOLDER], where FOLDER is what to write to.
set -e
study=results/gowalla-mf folder=${1:-tuning/gowalla-mf}
search() {  # a search's part of search.yaml, as a file of its own
  mkdir -p $folder/search
  python results/records.py search gowalla-mf $1 > $folder/search/$1.yaml
  echo $folder/search/$1.yaml
}
tune="recbole-hns tune --model=MF --dataset=gowalla --config_files=$study/settings.yaml --refit --storage=$folder"
$tune --sampler=dns       --search=$(search dns)       --name=dns
$tune --sampler=softmax_v --search=$(search softmax_v) --name=softmax_v
$tune --sampler=uniform   --search=$(search uniform)   --name=uniform
$tune --sampler=aobpr     --search=$(search aobpr)     --name=aobpr
$tune --sampler=warp      --search=$(search warp)      --name=warp
$tune --sampler=adasir_u  --search=$(search adasir_u)  --name=adasir_u
$tune --sampler=adasir_p  --search=$(search adasir_p)  --name=adasir_p
$tune --sampler=dns       --search=$(search dns1)      --name=dns1
$tune --sampler=pris_u    --search=$(search pris_u)    --name=pris_u
$tune --sampler=pris_p    --search=$(search pris_p)    --name=pris_p
$tune --sampler=irgan     --search=$(search irgan)     --name=irgan
$tune --sampler=kernel    --search=$(search kernel)    --name=kernel
$tune --sampler=non_sampling --search=$(search non_sampling) --name=non_sampling
recbole-hns report $folder --output=$folder/report --title="MF on Gowalla" --metrics=ndcg@50,recall@50
