"""What lies in a watched folder to do harm: nothing of it gets through, and the others come."""

import os
import zipfile

from rag.records import SyncState


def pack(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name.replace("_up_", "../").replace("_root_", "/"), data)


def test_stops_no_sync_of_the_others(office, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nhush hush\n")
    folder = office.folder
    office.write("good.md", "# Good\n\nThe zorblax weighs 1 kg.\n")
    office.write("line\nbreak.md", "# Line\n\nOne two three.\n")
    office.write("Case.md", "# Upper\n\nIt weighs 2 kg.\n")
    office.write("case.md", "# Lower\n\nIt weighs 3 kg.\n")
    office.write("x" * 240 + ".md", "# Long\n\nIt weighs 4 kg.\n")
    os.mkfifo(folder / "pipe.md")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "self.md").symlink_to(folder / "self.md")
    (folder / "out.md").symlink_to(secret)
    pack(folder / "bomb.zip", **{"big.txt": b"a" * 30_000_000})
    pack(folder / "many.zip", **{f"{n}.txt": b"x" for n in range(10_001)})
    pack(folder / "inner.zip", **{"a.md": "# Packed\n\nwords\n"})
    pack(folder / "outer.zip", **{"inner.zip": (folder / "inner.zip").read_bytes()})
    pack(
        folder / "paths.zip",
        _up_up=b"x",
        **{"_up_up.md": "# Up\n\nup\n", "_root_etc.md": "# E\n\ne\n"},
    )
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 and no more")

    told = office.add()

    names = office.ids().keys()
    assert told.state is SyncState.IDLE, told.reason
    assert {"good.md", "Case.md", "case.md", "line\ufffdbreak.md", "inner.zip/a.md"} <= names
    assert "paths.zip/etc.md" in names  # and what leads out of the archive is left out
    assert not any(name.startswith(("/", "loop", "out", "pipe")) or ".." in name for name in names)
    assert not any("hush" in text for text in office.texts().values())
    assert {"bomb.zip", "many.zip", "broken.zip"} <= {each.name for each in told.failures}
    again = office.sync()
    assert (again.source.counts.new, office.ids().keys()) == (0, names)
