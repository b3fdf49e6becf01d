#!/bin/sh
# Signs the name of a unit for a page: SIGN=sotto_… ./sign.sh shop 'visitor 7'
set -e
text=$(printf %s "$2" | basenc --base64url -w0 | tr -d =).$(($(date +%s) + 3600))
key=$(printf %s "$SIGN" | sha256sum | cut -c-64)
mac=$(printf '%s\n%s' "$1" "$text" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | basenc --base64url -w0)
echo "$text.$(echo "$mac" | tr -d =)"
