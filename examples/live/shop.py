"""Decisions and rewards of a running sotto serve, with requests.

    SOTTO_SERVER=http://127.0.0.1:8080 SOTTO_KEY=sotto_… python3 shop.py 'visitor 7'
"""

import os
import sys

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

SERVER = os.environ.get("SOTTO_SERVER", "http://127.0.0.1:8080")
USUAL = {"decision": None, "arm": "red", "value": "#c00"}


class Sotto:
    """One service. Its key may decide and reward."""

    def __init__(self, server, key):
        self.base = server.rstrip("/") + "/v1/experiments/"
        self.session = requests.Session()
        self.session.headers["X-API-Key"] = key
        # A decision counts once, so that a reward may be sent again after 503 or an error of the
        # network, and after nothing else. Retry sends POST again only where it is told to.
        again = Retry(total=5, backoff_factor=0.1, status_forcelist=[503], allowed_methods=["POST"])
        self.rewards = requests.Session()
        self.rewards.headers["X-API-Key"] = key
        self.rewards.mount(server, HTTPAdapter(max_retries=again))

    def decide(self, experiment, unit):
        """The decision for a unit, or the usual arm if there is none to be had in time."""
        try:
            answer = self.session.post(f"{self.base}{experiment}/decisions", json={"unit": unit}, timeout=0.5)
            answer.raise_for_status()
            return answer.json()
        except requests.RequestException as e:
            print("the usual arm is shown:", type(e).__name__, file=sys.stderr)
            return USUAL

    def reward(self, experiment, decision, reward):
        """Reports a reward, and returns how it was answered; None if nothing counts."""
        if decision["decision"] is None:
            return None
        report = {"decision": decision["decision"], "reward": reward}
        answer = self.rewards.post(f"{self.base}{experiment}/rewards", json=report, timeout=15)
        answer.raise_for_status()
        return answer.json()["status"]


if __name__ == "__main__":
    sotto = Sotto(SERVER, os.environ["SOTTO_KEY"])
    shown = sotto.decide("shop", sys.argv[1])
    print("show", shown["arm"])
    print(sotto.reward("shop", shown, 1))
