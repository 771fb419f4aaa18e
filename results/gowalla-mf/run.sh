# Every search of this study: bash results/gowalla-mf/run.sh [FOLDER], where FOLDER is what to write to.
# A single one: its line, with $study and $folder replaced.
set -e
study=results/gowalla-mf folder=${1:-tuning/gowalla-mf}
tune="recbole-hns tune --model=MF --dataset=gowalla --config_files=$study/settings.yaml --refit --storage=$folder"
$tune --sampler=dns       --search=$study/search/dns.yaml       --name=dns
$tune --sampler=softmax_v --search=$study/search/softmax_v.yaml --name=softmax_v
$tune --sampler=uniform   --search=$study/search/uniform.yaml   --name=uniform
$tune --sampler=aobpr     --search=$study/search/aobpr.yaml     --name=aobpr
$tune --sampler=warp      --search=$study/search/warp.yaml      --name=warp
$tune --sampler=adasir_u  --search=$study/search/adasir_u.yaml  --name=adasir_u
$tune --sampler=adasir_p  --search=$study/search/adasir_p.yaml  --name=adasir_p
$tune --sampler=dns       --search=$study/search/dns1.yaml      --name=dns1
$tune --sampler=pris_u    --search=$study/search/pris_u.yaml    --name=pris_u
$tune --sampler=pris_p    --search=$study/search/pris_p.yaml    --name=pris_p
$tune --sampler=irgan     --search=$study/search/irgan.yaml     --name=irgan
$tune --sampler=kernel    --search=$study/search/kernel.yaml    --name=kernel
$tune --sampler=non_sampling --search=$study/search/non_sampling.yaml --name=non_sampling
recbole-hns report $folder --output=$folder/report --title="MF on Gowalla" --metrics=ndcg@50,recall@50
