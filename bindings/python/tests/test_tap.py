"""The tap and its leases: sync, threads, errors, wrong use."""

import copy
import datetime
import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest

import standpipe
from conftest import STANDPIPE, run


def test_a_lease_is_held_in_its_block_and_settled_after_it(tap):
    with tap.reserve("my/slots", agent="blog") as lease:
        assert tap.status("my/slots").in_flight == 1
        assert lease.agent == "blog" and lease.cost == {"requests": 1} and lease.pool == "my/slots"
        assert not lease.is_settled
    assert lease.is_settled
    assert tap.status("my/slots").in_flight == 0


def test_commit_returns_the_difference_and_cancel_everything(tap):
    with tap.reserve("my/api", tokens=1200) as lease:
        lease.commit(tokens=900)
    tap.reserve("my/api", cost={"tokens": 5000}).cancel()
    limits = {limit["unit"]: limit["used"] for limit in tap.status("my/api").limits}
    assert limits == {"requests": 1, "tokens": 900}


def test_an_exception_in_the_block_settles_at_the_estimate(tap):
    with pytest.raises(ZeroDivisionError):
        with tap.reserve("my/api", tokens=70):
            1 / 0
    assert tap.status("my/api").limits[1]["used"] == 70


def test_a_lease_that_is_forgotten_is_settled(tap):
    tap.reserve("my/slots")
    tap.flush()
    assert tap.status("my/slots").in_flight == 0


def test_a_timeout_has_the_attributes_of_a_refusal(tap):
    with tap.reserve("my/slots"):
        with pytest.raises(standpipe.Timeout) as refused:
            tap.reserve("my/slots", timeout=0)
    error = refused.value
    assert isinstance(error, TimeoutError) and isinstance(error, standpipe.Error)
    assert (error.reason, error.limit, error.short_by) == ("limit", "parallel", 1)
    assert error.until is None and error.waiting_for == "a call in flight to end"


def test_until_and_retry_after_of_a_rate(home):
    tap = standpipe.open(limits={"my/rate": {"requests": "2/h"}})
    tap.reserve("my/rate").commit()
    with pytest.raises(standpipe.Timeout) as refused:
        tap.reserve("my/rate", timeout=0)
    error = refused.value
    assert error.exact and 3500 < error.retry_after < 3601
    assert error.until > datetime.datetime.now(datetime.timezone.utc)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is standpipe.Timeout and again.until == error.until
    assert str(again) == str(error)


def test_a_call_that_can_never_fit_says_so(tap):
    with pytest.raises(standpipe.NeverFits, match="can never fit"):
        tap.reserve("my/api", tokens=10**9)


def test_a_terminal_refusal_stops_the_pool_until_it_is_resumed(tap):
    tap.throttle("my/api", kind="terminal")
    with pytest.raises(standpipe.Terminal):
        tap.reserve("my/api", timeout=5)
    tap.resume("my/api")
    tap.reserve("my/api", timeout=5).commit()


def test_pause_and_resume_by_hand(tap):
    tap.pause("my/api", datetime.timedelta(hours=1), agent="ops")
    status = tap.status("my/api")
    assert status.pause["by"] == "ops" and " s by ops" in repr(status)
    assert "by ops" in status._repr_html_()
    peek = tap.peek("my/api")
    assert not peek and peek.reason == "pause" and peek.retry_after > 3500
    assert "pause" in repr(peek)
    tap.resume("my/api")
    assert tap.peek("my/api")


def test_a_429_of_one_lease_pauses_everyone(tap):
    tap.reserve("my/api").throttled(retry_after=30)
    with pytest.raises(standpipe.Timeout) as refused:
        tap.reserve("my/api", timeout=0)
    assert refused.value.reason == "pause"


def test_reserve_all_takes_all_or_none(tap):
    with tap.reserve("my/pair"), tap.reserve("my/pair"):
        with pytest.raises(standpipe.Timeout):
            tap.reserve_all(["my/slots", "my/pair"], timeout=0)
        assert tap.status("my/slots").in_flight == 0
    with tap.reserve_all(["my/slots", ("my/pair", {"agent": "x"})], agent="y") as leases:
        assert [lease.agent for lease in leases] == ["y", "x"]
        assert tap.status("my/pair").in_flight == 1
    assert tap.status("my/pair").in_flight == 0


def test_the_agent_comes_from_the_argument_the_context_or_the_environment(tap, monkeypatch):
    with standpipe.agent("blog", priority="background"):
        with standpipe.agent(priority="critical"), tap.reserve("my/slots") as lease:
            assert lease.agent == "blog"
            assert tap.status("my/slots").leases[0]["priority"] == "critical"
        with tap.reserve("my/slots", agent="other") as lease:
            assert lease.agent == "other"
    monkeypatch.setenv("STANDPIPE_AGENT", "nightly")
    assert standpipe.open().agent == "nightly"
    monkeypatch.delenv("STANDPIPE_AGENT")
    assert standpipe.open(agent="mine").agent == "mine"


def test_limits_from_code_are_sent_again_when_the_ledger_lost_them(tap):
    tap.reserve("my/slots").commit()
    done = subprocess.run([STANDPIPE, "store", "reset", "my/slots", "--yes"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tap.reserve("my/slots", timeout=60).commit()


def test_a_lease_can_be_handed_to_another_process(tap):
    lease = tap.reserve("my/slots")
    name = lease.keep(ttl=600)
    assert tap.status("my/slots").in_flight == 1
    run("import standpipe, sys; standpipe.open().commit(sys.argv[1])", name)
    assert tap.status("my/slots").in_flight == 0
    with pytest.raises(standpipe.LeaseGone):
        tap.commit(name)


WRONG = [
    (dict(tokens=-1), standpipe.InvalidArgument, "tokens is -1"),
    (dict(tokens=1.5), TypeError, "whole number"),
    (dict(tokens="many"), TypeError, "whole number"),
    (dict(tokens=True), TypeError, "whole number"),
    (dict(tokens=2**80), standpipe.InvalidArgument, "whole number"),
    (dict(toknes=5), standpipe.InvalidArgument, "did you mean `tokens`"),
    (dict(timeout=-1), standpipe.InvalidArgument, "0 or more"),
    (dict(timeout=float("nan")), standpipe.InvalidArgument, "0 or more"),
    (dict(timeout="soon"), standpipe.InvalidArgument, "timeout"),
    (dict(timeout=[]), TypeError, "seconds as a number"),
    (dict(priority="urgent"), standpipe.InvalidArgument, "critical, standard or background"),
    (dict(agent=3), TypeError, "must be a str"),
    (dict(agent="not a name"), standpipe.InvalidArgument, "name of an agent"),
    (dict(cost=3), TypeError, "dict of amounts"),
    (dict(cost={"tokens": -3}), standpipe.InvalidArgument, "tokens is -3"),
    (dict(retry_of="x"), standpipe.InvalidArgument, "id of a lease"),
    (dict(ttl=0), standpipe.InvalidArgument, "time to live"),
]


@pytest.mark.parametrize("call, kind, message", WRONG)
def test_a_wrong_argument_is_a_clear_exception_and_takes_nothing(tap, call, kind, message):
    with pytest.raises(kind, match=message):
        tap.reserve("my/api", **call)
    assert tap.status("my/api").limits[0]["used"] == 0


def test_wrong_names_and_limits_are_clear_exceptions(tap):
    with pytest.raises(standpipe.InvalidArgument, match="name of a pool"):
        tap.reserve("not a pool")
    with pytest.raises(standpipe.ConfigError, match="no limits"):
        tap.reserve("my/other")
    with pytest.raises(TypeError, match="dict such as"):
        standpipe.open(limits={"a/b": 5})
    with pytest.raises(standpipe.InvalidArgument, match="at least one"):
        standpipe.open(limits={"a/b": {}})
    with pytest.raises(standpipe.InvalidArgument):
        standpipe.open(limits={"a/b": {"requests": "many"}})
    with pytest.raises(standpipe.InvalidArgument):
        standpipe.open("nowhere://x")
    with pytest.raises(standpipe.InvalidArgument, match="kind of refusal"):
        tap.throttle("my/api", kind="odd")


def test_frequent_mistakes_are_clear_exceptions(tap):
    with pytest.raises(TypeError, match="tokens=1200"):
        tap.reserve("my/api", 1200)
    with pytest.raises(standpipe.InvalidArgument, match="did you mean `requests`"):
        standpipe.open(limits={"my/api": {"request": "60/min"}})
    with pytest.raises(standpipe.InvalidArgument, match="`flie`: .*did you mean file"):
        standpipe.open("flie")
    with pytest.raises(TypeError, match="cost must be a dict"):
        standpipe.limited("my/api", cost=5)
    with pytest.raises(TypeError, match="whole number, not float$"):
        tap.reserve("my/api", tokens=1.5)

    async def call(lease):
        return 5

    with pytest.raises(TypeError, match="awith_retry"):
        standpipe.with_retry("my/api", call, tap=tap)


def test_a_lease_is_settled_once(tap):
    lease = tap.reserve("my/slots")
    lease.commit()
    for again in (lease.commit, lease.cancel, lease.release, lease.throttled, lease.heartbeat,
                  lease.progress, lease.__enter__):
        with pytest.raises(standpipe.LeaseGone, match="reserve again"):
            again()


def test_leases_and_taps_are_not_pickled(tap):
    with tap.reserve("my/slots") as lease:
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="lease.id"):
                copied(lease)
    with pytest.raises(TypeError, match="standpipe.open"):
        pickle.dumps(tap)


def test_threads_wait_without_the_gil_and_in_order(tap):
    first = tap.reserve("my/slots")
    served, waiting = [], []
    for number in range(5):
        def wait(number=number):
            with tap.reserve("my/slots"):
                served.append(number)
        thread = threading.Thread(target=wait)
        thread.start()
        waiting.append(thread)
        # This thread runs while the others wait, so they do not hold the GIL.
        while tap.status("my/slots").waiting <= number:
            pass
    first.commit()
    for thread in waiting:
        thread.join()
    assert served == [0, 1, 2, 3, 4]


# A job in the background inherits an ignored SIGINT, for which Python installs no handler.
INTERRUPTED = """
import signal, standpipe
signal.signal(signal.SIGINT, signal.default_int_handler)
tap = standpipe.open(limits={"my/slots": {"parallel": 1}})
print("waits", flush=True)
try:
    tap.reserve("my/slots", timeout=3600)
except KeyboardInterrupt:
    print("interrupted", tap.status("my/slots").waiting, flush=True)
"""


def test_ctrl_c_ends_a_wait_and_leaves_no_ticket(tap):
    with tap.reserve("my/slots"):
        program = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
        assert program.stdout.readline() == "waits\n"
        while tap.status("my/slots").waiting == 0:
            pass
        program.send_signal(signal.SIGINT)
        assert program.communicate()[0] == "interrupted 0\n"
        assert program.returncode == 0


def test_the_slot_of_a_killed_process_is_free(tap):
    holds = "import standpipe, time; l = standpipe.open().reserve('my/slots'); print(flush=True); " \
            "time.sleep(600)"
    tap.reserve("my/slots").commit()
    program = subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE)
    program.stdout.readline()
    program.kill()
    program.wait()
    tap.reserve("my/slots", timeout=60).commit()


def test_status_prints_in_a_terminal_and_in_a_notebook(tap):
    with tap.reserve("my/slots", agent="blog"):
        status = tap.status()
        pool = tap.status("my/slots")
    assert "my/slots  1 in flight, 0 waiting, green" in repr(status)
    assert "holds  blog" in repr(pool)
    shown = pool._repr_html_()
    assert shown.startswith("<table>") and "blog" in shown and "width:100%" in shown
    assert pool["pool"] == pool.pool == "my/slots" and len(pool) == len(list(pool))
    with pytest.raises(AttributeError, match="in_flight"):
        pool.inflight
    assert os.environ["STANDPIPE_HOME"] in repr(tap)


def test_every_public_method_has_a_docstring() -> None:
    for owner in (standpipe.Tap, standpipe.Lease):
        for name in dir(owner):
            if not name.startswith("_"):
                assert (getattr(owner, name).__doc__ or "").strip(), f"{owner.__name__}.{name}"
