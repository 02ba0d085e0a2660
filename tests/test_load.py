"""How much of the machine other programs use: plain sums over readings."""

import os
import subprocess
import sys
import time

from lanes.measure.load import Load, complaint


def test_what_others_use_is_what_the_machine_uses_less_our_own() -> None:
    assert Load(100.0, 10.0, 5.0).by_others(Load(112.0, 14.0, 9.0)) == 2.0
    assert Load(100.0, 10.0, 5.0).by_others(Load(104.0, 14.0, 9.0)) == 0.0
    assert Load(100.0, 10.0, 5.0).by_others(Load(100.0, 10.5, 5.0)) == 0.0, "readings are rounded"


def test_a_reading_counts_our_own_work_as_ours() -> None:
    before = Load.now()
    while Load.now().own - before.own < 0.2:
        sum(range(10_000))
    after = Load.now()
    assert after.machine - before.machine >= after.own - before.own - 0.1


def test_a_reading_counts_another_program_as_others() -> None:
    before = Load.now()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            end = time.monotonic() + 60
            while (Load.now().machine - before.machine) - (Load.now().own - before.own) < 0.3:
                assert time.monotonic() < end
                os.sched_yield() if hasattr(os, "sched_yield") else time.sleep(0)
        finally:
            other.kill()


def test_only_a_disturbed_measurement_is_complained_of() -> None:
    assert complaint(0.1) is None
    assert "1.3 cores" in (complaint(1.3) or "")
