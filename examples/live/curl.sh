#!/usr/bin/env bash
# The life of an experiment by curl and jq, with an admin key:
#
#   SOTTO_SERVER=http://127.0.0.1:8080 SOTTO_KEY=sotto_… ./curl.sh
set -euo pipefail
cd "$(dirname "$0")"
: "${SOTTO_SERVER:=http://127.0.0.1:8080}" "${SOTTO_KEY:?is the admin key}"

# Lists of processes show arguments to everybody: the key and the reward are none.
ask() { # path, and what curl is to be told beside
  curl --silent --show-error --fail-with-body --config <(printf 'header = "X-API-Key: %s"\n' "$SOTTO_KEY") \
    "${@:2}" "$SOTTO_SERVER$1"
}

ask /v1/experiments --data-binary @shop.yaml >/dev/null
ask /v1/experiments/shop/start --request POST >/dev/null

decision=$(ask /v1/experiments/shop/decisions --data '{"unit": "visitor 7"}')
jq --raw-output '"show \(.arm), which is \(.value)"' <<<"$decision"

# She has bought. Send it again after 503 or an error of the network, and after nothing else.
jq '{decision, reward: 1}' <<<"$decision" |
  ask /v1/experiments/shop/rewards --data-binary @- --retry 5 | jq --raw-output .status

ask /v1/experiments/shop | jq --raw-output '"\(.state), \(.budget) a visitor, \(.batches) batches released"'
