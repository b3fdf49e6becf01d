# A ratio of two of the sums that metrics.jq prints, by arm.
# jq -Rnrf ratio.jq --arg of revenue --arg per orders sums.tsv
[ inputs / "\t" | {metric: .[0], arm: .[1], sum: (.[3] | tonumber)} ] | group_by(.arm)[]
| [ .[0].arm, (map(select(.metric == $of))[0].sum / map(select(.metric == $per))[0].sum) ] | @tsv
