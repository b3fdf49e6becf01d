# The sums of metrics that a transcript has: metric, arm, decisions, sum in units of the metric.
# jq -nrf metrics.jq shop.jsonl
input.declaration as $d
| [ inputs | select(.metrics)
    | [ (.plays[]? | select(.release and (.held | not))), .ahead[]?, (.rest[]? | select(.rounds > 0)) ] as $of
    | [ $of[] | . as $row | (.cells // [0])[] | $row ] as $of
    | .metrics | to_entries[] | .key as $m | .value | range($of | length) as $i
    | {metric: $d.metrics[$m], arm: $d.arms[$of[$i].arm].name, n: .n[$i], sum: .sum[$i]} ]
| group_by(.metric.name, .arm)[] | (map(.n) | add) as $n | .[0].metric.range as [$lo, $hi]
| [.[0].metric.name, .[0].arm, $n, $lo * $n + ($hi - $lo) * (map(.sum) | add)] | @tsv
