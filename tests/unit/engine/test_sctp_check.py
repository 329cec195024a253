"""`netwarp sctp check`: mistakes in the words of the command, before anything is run."""

import pytest
from netwarp.core.errors import SpecError
from netwarp.engine.sctp_check import SctpNetwork, check_sctp


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("linux", "rto_min=5s,rto_max=1s", r"^B's rto_min is above rto_max"),
        ("rto_min=5s,rto_max=1s", "linux", r"^A's rto_min is above rto_max"),
        ("linux", "sack_delay=900ms", r"^B's sack_delay"),
    ],
)
def test_a_setting_that_is_refused_is_named_by_its_side(a: str, b: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        check_sctp(a, b)
    assert "first seen" not in str(error.value)


def test_a_network_without_units_is_refused() -> None:
    with pytest.raises(SpecError, match="unit is missing"):
        check_sctp("linux", "linux", SctpNetwork(rtt="20"))
