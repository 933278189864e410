"""Forms: whatever the parts hold, they are cut where they were joined."""

from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.context import multipart
from gateway.context.objects import Limits
from gateway.errors import BodyError

CONTENT = st.lists(
    st.sampled_from([b"--b", b"\r\n", b"--", b"\n", b"--b--", b"x", b"\x00\xff", b"--bc", b" "]), max_size=8
).map(b"".join)


def form(contents: list[bytes]) -> bytes:
    head = b'--b\r\nContent-Disposition: form-data; name="n%d"\r\n\r\n'
    return b"".join(head % i + content + b"\r\n" for i, content in enumerate(contents)) + b"--b--\r\n"


@given(st.lists(CONTENT, max_size=4), st.data())
def test_parts_hold_what_was_put_in(contents: list[bytes], data: st.DataObject) -> None:
    assume(not any(b"\r\n--b" in b"\r\n" + content for content in contents))
    body = form(contents)
    parts = multipart.parse(body, "b", Limits())
    assert [body[p.start : p.end] for p in parts] == contents
    changed = (
        data.draw(st.dictionaries(st.integers(0, max(0, len(parts) - 1)), st.sampled_from([b"", b"new"])))
        if parts
        else {}
    )
    rebuilt = multipart.rebuild(body, parts, changed)
    assert rebuilt == form([changed.get(i, content) for i, content in enumerate(contents)])


@given(st.lists(CONTENT, max_size=3).map(b"".join))
def test_arbitrary_bodies_raise_nothing_else(body: bytes) -> None:
    try:
        parts = multipart.parse(body, "b", Limits())
    except BodyError:
        return
    assert multipart.rebuild(body, parts, {}) == body
