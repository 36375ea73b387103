"""Every message that the product can emit is explained on the page of troubleshooting, by its text."""

from __future__ import annotations

import re

from documentation.emitted import ROOT, messages, normalised

PAGE = ROOT / "docs" / "troubleshooting.md"
ENTRY = re.compile(r"^\| `(.+?)` \| (.+) \|$", re.MULTILINE)


def entries() -> dict[str, str]:
    """The explanation of each text."""
    found = ENTRY.findall(PAGE.read_text())
    return {normalised(text): meaning for text, meaning in found}


def test_every_message_has_an_entry():
    known = entries()
    missing = {text: place for text, place in messages().items() if text not in known}

    assert missing == {}, f"each needs a line in {PAGE.name}: | `text` | what it means, and what to do |"


def test_every_entry_says_something():
    assert [text for text, meaning in entries().items() if len(meaning) < 5] == []


def test_no_text_is_explained_twice():
    texts = [text for text, _ in ENTRY.findall(PAGE.read_text())]

    assert sorted(set(texts)) == sorted(texts)


def test_the_messages_are_found_in_the_code():
    found = messages()

    assert len(found) > 150
    assert "the answer is not JSON" in found
    assert "finding Stacked" in found
    assert normalised("list %s: %.1f s") == "list …: … s"
