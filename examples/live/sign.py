# Signs the name of a unit for a page: SIGN=sotto_… python3 sign.py shop 'visitor 7'
import base64, hashlib, hmac, os, sys, time

experiment, unit = sys.argv[1:]
b64 = lambda b: base64.urlsafe_b64encode(b).rstrip(b"=").decode()
text = b64(unit.encode()) + "." + str(int(time.time()) + 3600)
key = hashlib.sha256(os.environ["SIGN"].encode()).digest()
print(text + "." + b64(hmac.digest(key, f"{experiment}\n{text}".encode(), "sha256")))
