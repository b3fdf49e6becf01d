import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

import sotto


def spoken(serve, *lines):
    """What serve answers to these lines, each of which it must answer by its turn."""
    turns = [line if "sotto" in line else {**line, "turn": i} for i, line in enumerate(lines)]
    out, text = io.StringIO(), "".join(json.dumps(line) + "\n" for line in turns)
    with mock.patch("sys.stdin", io.StringIO(text)), contextlib.redirect_stdout(out), \
            contextlib.redirect_stderr(io.StringIO()):
        serve()
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [a.pop("turn", None) for a in answers] == [line.get("turn") for line in turns]
    return answers


RUN = {"run": {"arms": 2, "horizon": 100, "seed": 7, "budget": {"epsilon": 1}, "scale": 1.0}}


class Play(unittest.TestCase):
    def test_commit(self):
        def my_policy(run):
            print("for people", run.horizon, run.random.random())
            released = yield [(arm, 10) for arm in range(run.arms)]
            assert released.tail == (0, 1, 0)
            yield sotto.rest(max(released, key=lambda r: r.mean).arm)

        released = {"release": [[0, 10, 4.5], [1, 10, 5.5]], "tail": [0, 1, 0]}
        said = spoken(lambda: sotto.play(my_policy), {"sotto": 1}, RUN, released, RUN, released)
        self.assertEqual(said, [
            {"sotto": 1, "name": "my-policy", "mechanism": "laplace", "bandit": "regret"},
            {"play": [[0, 10], [1, 10]]}, {"rest": 1}, {"play": [[0, 10], [1, 10]]}, {"rest": 1}])

    def test_coins_are_the_seed(self):
        def coins(run):
            while True:
                yield [(run.random.randrange(2), run.random.randrange(1, 50))]

        twice = spoken(lambda: sotto.play(coins), RUN, RUN)
        self.assertEqual(twice[0], twice[1])

    def test_other_version(self):
        with self.assertRaises(ValueError):
            spoken(lambda: sotto.play(lambda run: iter(()), name="x"), {"sotto": 2})

    def test_mechanism(self):
        said = spoken(lambda: sotto.mechanism(lambda x, rng: sum(x) + rng.random(), name="open", epsilon=1),
            {"sotto": 1}, {"records": [0, 1], "times": 3, "seed": 1})
        self.assertEqual(said[0]["claim"], {"epsilon": 1})
        self.assertTrue(all(1 <= x < 2 for x in said[1]["outputs"]))

    def test_environment(self):
        said = spoken(lambda: sotto.environment(2, lambda arm, rng: float(arm)),
            {"sotto": 1}, {"arm": 1, "times": 3, "seed": 1})
        self.assertEqual(said, [{"sotto": 1, "name": "environment", "arms": 2}, {"rewards": [1.0, 1.0, 1.0]}])


class Results(unittest.TestCase):
    def test_rows(self):
        with tempfile.TemporaryDirectory() as at:
            with open(os.path.join(at, "summary.csv"), "w") as f:
                f.write("experiment,policy,t,mean,sd\nx,007,100,1.5,\nx,b,1000,2,0.25\n")
            rows = sotto.results(at)
        self.assertEqual(rows[0], {"experiment": "x", "policy": "007", "t": 100, "mean": 1.5, "sd": None})
        self.assertEqual(sotto.columns(rows)["t"], [100, 1000])
        self.assertEqual([str(x) for x in sotto.numbers(rows, "sd")], ["nan", "0.25"])
        try:
            self.assertEqual(len(sotto.frame(rows)), 2)
        except ImportError:
            pass

    @unittest.skipIf(os.name == "nt", "a script is the program")
    def test_command(self):
        with tempfile.TemporaryDirectory() as at:
            path = os.path.join(at, "sotto")
            with open(path, "w") as f:
                f.write(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\nsys.exit('broken' if sys.argv[1] == 'no' else 0)\n")
            os.chmod(path, os.stat(path).st_mode | stat.S_IEXEC)
            with mock.patch.dict(os.environ, SOTTO=path):
                self.assertEqual(sotto.command("run", 1).strip(), "['run', '1']")
                with self.assertRaises(sotto.Error) as failed:
                    sotto.command("no")
                self.assertEqual(failed.exception.code, 1)


if __name__ == "__main__":
    unittest.main()
