from __future__ import annotations

import os

from bench.usage import cpu_seconds, machine_seconds


def test_the_processor_time_of_a_process_group_is_part_of_the_machines():
    mine = cpu_seconds({os.getpgrp()})

    assert 0 < mine < machine_seconds()


def test_no_process_group_has_used_no_time():
    assert cpu_seconds(set()) == 0
