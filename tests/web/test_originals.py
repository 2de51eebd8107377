"""Originals over HTTP: whoever may read a document may open its file, and nobody else."""

import io

from reportlab.pdfgen.canvas import Canvas

PAGE = b"<title>Bad</title><script>alert(1)</script><p>The Aero 5 hums softly at night.</p>"


def printed(text="The Nimbus weighs 940 g."):
    """A PDF of one page."""
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 700, text)
    canvas.save()
    return file.getvalue()


def brought(world, name, data, *, by="anna", collection="1"):
    """The id of a document that somebody uploads."""
    world.upload(by, name, data, collection)
    return next(each["id"] for each in world.documents(by) if each["name"] == name)


def get(world, url, *, by="anna", **more):
    return world.call("GET", url, by=by, **more)


def paths(document_id):
    return f"/api/v1/documents/{document_id}/original", f"/documents/{document_id}/original"


def test_are_what_was_uploaded(world):
    data = printed()
    program, page = (
        get(world, each) for each in paths(brought(world, "a folder/nimbus.pdf", data))
    )

    assert program.data == page.data == data
    assert program.headers["Content-Disposition"] == "attachment; filename=nimbus.pdf"
    assert page.headers["Content-Disposition"] == "inline; filename=nimbus.pdf"
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    for each in (program, page):
        assert each.headers["X-Content-Type-Options"] == "nosniff"


def test_can_be_read_in_parts(world):
    data = printed()

    part = get(world, paths(brought(world, "nimbus.pdf", data))[0], headers={"Range": "bytes=0-7"})

    assert (part.status_code, part.data) == (206, data[:8])


def test_that_could_hold_scripts_are_never_shown(world):
    for each in (get(world, each) for each in paths(brought(world, "bad.html", PAGE))):
        assert each.data == PAGE
        assert each.headers["Content-Disposition"].startswith("attachment")
        assert "script-src" not in each.headers["Content-Security-Policy"]


def test_of_the_same_content_open_to_somebody_do_not_open_others(world):
    """It is kept once, but asked for by document."""
    hidden = brought(world, "hidden.pdf", printed(), collection=world.annas)
    open_to_all = brought(world, "open.pdf", printed(), by="ben")

    assert get(world, paths(open_to_all)[0], by="ben").status_code == 200
    assert get(world, paths(hidden)[0], by="ben").status_code == 404


def test_that_were_not_kept_are_told_of(world):
    document_id = brought(world, "nimbus.pdf", printed())
    for path in (world.folder / "originals").rglob("*"):
        if path.is_file():
            path.unlink()

    refused = get(world, paths(document_id)[0])
    page = get(world, f"/documents/{document_id}").get_data(as_text=True)

    assert refused.status_code == 404
    assert "Ingest the file again" in refused.get_json()["detail"]
    assert "Open the original" not in page
    assert "Download it" not in page


def test_are_linked_to_from_their_documents(world):
    document_id = brought(world, "nimbus.pdf", printed())

    page = get(world, f"/documents/{document_id}").get_data(as_text=True)

    assert f'href="/documents/{document_id}/original#page=1"' in page
    assert f'href="/documents/{document_id}/original?download=1" download' in page
