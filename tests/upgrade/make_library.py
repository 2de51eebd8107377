# ruff: noqa: E501, I001
"""Writes the library of this folder, with the code of commit a7c3b94 alone.

    git worktree add ../old a7c3b94 && cd ../old
    PYTHONPATH=$PWD python …/tests/upgrade/make_library.py FOLDER [POSTGRES-URL]

FOLDER/var is a data folder as that version left it, in the middle of its work; FOLDER/expected.json is
what it told of it: every row of every table, and what its API answered. Nothing here follows later
versions: what is stored is stored.
"""

import base64
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from sqlalchemy import insert, select

from rag.database import audit, logins, metadata, reading, writing
from rag.documents.files import IncomingFile
from rag.records import (
    Answer,
    Card,
    ChatMessage,
    Citation,
    ContextConfig,
    DocumentLink,
    ImportedMessage,
    Judging,
    Mention,
    MessageStatus,
    Notice,
    NoticeKind,
    Offer,
    Role,
    SetAside,
    ShownPassage,
    ToolCall,
    Unsourced,
    Usage,
    Verdict,
)
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.building import build
from tests.model_application import calling
from tests.openai_server import OpenAIServer, reply

HANDBOOK = """# Aero 5 handbook

## Weight

The Aero 5 weighs 120 g. The Aero 5 Pro weighs 140 g.

## Battery

The battery of the Aero 5 lasts 30 hours at medium volume. Charging takes two hours.

## Returns

Refunds are paid within five working days after the parcel has arrived. From abroad it takes ten
working days. Opened ear tips cannot be returned.
"""
PRICES = """product,category,price,in_stock,since
Aero 5,earphones,79.00,yes,2024-03-01
Aero 5 Pro,earphones,129.00,yes,2025-01-15
Kontor 8,switches,99.50,no,2023-11-30
Kontor 8 PoE,switches,189.00,yes,2024-06-01
"""
SALARIES = """major,monthly_pay,openings
Nursing,48000,1200
Physics,45000,340
Drama,27000,1068
"""
SECRET = "# Margins\n\nThe margin of the Aero 5 is 41 %. The buyer is Ms Okafor.\n"
NOTE = (
    "# Opening hours\n\nThe workshop is open from 9:00 to 17:30. On Fridays it closes at 15:00.\n"
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "stock",
            "parameters": {"type": "object", "properties": {"of": {"type": "string"}}},
        },
    }
]
FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "weight",
        "schema": {
            "type": "object",
            "properties": {"weight": {"type": "string"}},
            "required": ["weight"],
        },
    },
}
WITHOUT_MODEL = [
    "How long do refunds take?",
    "And from abroad?",
    "What is the average price of the products by category?",
    "What is the lowest monthly pay anyone endures?",
    "Which documents are there?",
    "Who painted the ceiling of the chapel?",
]
WITH_MODEL = [
    (
        "How heavy is the Aero 5?",
        "The Aero 5 weighs 120 g [1]. The Aero 5 Pro weighs 160 g [1]. Both together weigh 260 g [1]. "
        "It is painted by hand in Lisbon [1]. It was designed by a former ballet dancer.",
    ),
    (
        "How long does its battery last?",
        "It lasts 30 hours at medium volume [1], and [47] says more.",
    ),
    ("And the refunds?", "Refunds are paid within five working days [1]; from abroad ten."),
]

EVERYTHING_SAID = Answer(
    "It weighs 120 g [1].",
    citations=(
        Citation(1, 16, 19, Verdict.CONTRADICTED, "It is 112 g.", True, "wise-1", "120 g", "112 g"),
    ),
    unsourced=(Unsourced(0, 8),),
    declined=True,
    model="fake",
    usage=Usage(11, 7),
    result=1,
    card=Card(
        (ShownPassage(1, "Aero 5 › Weight", "It weighs 112 g.", ((3, 9),)),),
        "These hardly answer.",
        (Mention("Aero 5", 2, (DocumentLink("d", "aero.md", "Aero 5"),)),),
    ),
    notices=tuple(Notice(kind, f"This is {kind.value}.") for kind in NoticeKind),
    judging=Judging.FAILED,
    judging_failure="The check failed: it took too long.",
    set_aside=SetAside("It weighs 3 t [1].", "It says nothing of this."),
    offers=(Offer("the weight by product", {"table": "t", "measures": []}),),
    given='{"weight": "120 g"}',
    rounds=(
        ChatMessage(
            Role.ASSISTANT, "", tool_calls=(ToolCall("call_0", "stock", '{"of": "Aero 5"}'),)
        ),
        ChatMessage(Role.TOOL, "12 in stock", tool_call_id="call_0"),
    ),
)


def post(client, path, body, *, expected=(200, 201, 202), **options):
    """The answer of the API, which has to be a good one."""
    answer = client.post(path, json=body, **options)
    assert answer.status_code in expected, (path, answer.status_code, answer.get_json())
    return answer.get_json()


def ask(client, session, question):
    return post(client, f"/api/v1/sessions/{session}/messages", {"content": question})


def documents(application, folder):
    files = {"handbook.md": HANDBOOK, "prices.csv": PRICES, "salaries.csv": SALARIES}
    incoming = [IncomingFile.from_bytes(name, text.encode()) for name, text in files.items()]
    stages = [each.stage for each in application.ingestion.ingest(incoming)]
    assert "failed" not in stages
    notes = folder / "notes"
    notes.mkdir()
    (notes / "hours.md").write_text(NOTE)
    (notes / "gone.md").write_text("# Gone\n\nThis note is removed again.\n")


def collection_of_its_own(application, client):
    made = post(client, "/api/v1/collections", {"name": "Buyers"})
    file = IncomingFile.from_bytes("margins.md", SECRET.encode())
    list(application.ingestion.ingest([replace(file, collection_id=made["id"])]))
    return made["id"]


def sync(application, client, folder, collection):
    body = {"address": str(folder / "notes"), "collection": collection}
    source = post(client, "/api/v1/sources", body)["id"]
    application.jobs.run_waiting()
    (folder / "notes" / "gone.md").unlink()
    post(client, f"/api/v1/sources/{source}/sync", {})
    application.jobs.run_waiting()
    return source


def without_model(client):
    session = post(client, "/api/v1/sessions", {"title": "Without a model"})["id"]
    for question in WITHOUT_MODEL:
        ask(client, session, question)
    return session


def with_model(client, server):
    session = post(client, "/api/v1/sessions", {"title": "With a model"})["id"]
    for question, said in WITH_MODEL:
        server.behaviours[:] = [reply(said)]
        ask(client, session, question)
    server.behaviours[:] = [
        calling(("search_session_history", {"query": "battery"})),
        reply("Earlier it was said that it lasts 30 hours [1]."),
    ]
    ask(client, session, "What did you say of the battery before?")
    return session


def judged(application, session, owner):
    """As a judge would have said it."""
    handle = application.store.open(session, owner=owner)
    message = handle.message(1)
    citations = list(message.answer.citations)
    citations[-1] = replace(
        citations[-1],
        verdict=Verdict.CONTRADICTED,
        reason="The source says another thing.",
        judged_by="wise-1",
    )
    answer = replace(message.answer, citations=tuple(citations), judging=Judging.DONE)
    handle.judge(replace(message, answer=answer))


def long_session(application, client, owner):
    """A summary in the context, one on request, a slice that was asked for, forgotten turns."""
    config = {"max_tokens": 3000, "recent_message_count": 4}
    session = post(client, "/api/v1/sessions", {"title": "Long", "context_config": config})["id"]
    lines = []
    for number in range(1, 19):
        lines += [
            {
                "role": "user",
                "content": f"My name is Vera. Question {number}: how long is step {number}?",
            },
            {
                "role": "assistant",
                "content": f"Step {number} of the Aero 5 takes {10 + number} minutes [{1 + number % 3}]. "
                "It must not be skipped, unless the housing is still warm from the oven; then wait. "
                f"Tool {number} of the set is the one with the green handle, and its torque is {number}5 N.",
            },
        ]
    sources = [
        {
            "n": number,
            "chunk_id": f"imported{number}",
            "document_id": "imported",
            "document": "steps.md",
            "title": "Steps",
            "locator": "",
            "heading_path": ["Steps"],
            "text": f"Steps {number}",
            "passage": f"Steps {number}",
            "content_hash": "",
        }
        for number in (1, 2, 3)
    ]
    body = {"messages": lines, "sources": sources}
    post(client, f"/api/v1/sessions/{session}/import", body)
    post(client, f"/api/v1/sessions/{session}/compact", {})
    post(client, f"/api/v1/sessions/{session}/summaries", {"start": 2, "end": 8})
    ask(client, session, "What was said of step 3?")
    handle = application.store.open(session, owner=owner)
    handle.request_slice(2, 6)
    return session


def clients(client, server):
    """Stock clients of both protocols; one with tools of its own, one that wants a form."""
    first = {"role": "user", "content": "How heavy is the Aero 5, please?"}
    server.behaviours[:] = [reply("The Aero 5 weighs 120 g [1].")]
    done = post(client, "/v1/chat/completions", {"model": "groundnote", "messages": [first]})
    said = done["choices"][0]["message"]
    again = [
        first,
        {"role": "assistant", "content": said["content"]},
        {"role": "user", "content": "And the Pro?"},
    ]
    server.behaviours[:] = [reply("The Aero 5 Pro weighs 140 g [1].")]
    done = post(client, "/v1/chat/completions", {"model": "groundnote", "messages": again})
    sessions = [done["session_id"]]
    asked = {"role": "user", "content": "How many Aero 5 are in stock?"}
    server.behaviours[:] = [calling(("stock", {"of": "Aero 5"}))]
    body = {"model": "groundnote", "messages": [asked], "tools": TOOLS}
    called = post(client, "/v1/chat/completions", body)
    message = called["choices"][0]["message"]
    result = {
        "role": "tool",
        "tool_call_id": message["tool_calls"][0]["id"],
        "content": "12 in stock",
    }
    server.behaviours[:] = [reply("It weighs 120 g [1]; 12 are there.")]
    ended = post(client, "/v1/chat/completions", {**body, "messages": [asked, message, result]})
    sessions.append(ended["session_id"])
    wanted = {"role": "user", "content": "Give me the weight of the Aero 5 as JSON."}
    server.behaviours[:] = [reply('{"weight": "120 g [1]"}')]
    body = {"model": "groundnote", "messages": [wanted], "response_format": FORM}
    sessions.append(post(client, "/v1/chat/completions", body)["session_id"])
    server.behaviours[:] = [reply("It lasts 30 hours [1].")]
    response = post(
        client, "/v1/responses", {"model": "groundnote", "input": "How long does the battery last?"}
    )
    server.behaviours[:] = [reply("Charging takes two hours [1].")]
    body = {"model": "groundnote", "input": "And charging?", "previous_response_id": response["id"]}
    post(client, "/v1/responses", body)
    return sessions


def endings(application, owner):
    """Answers that ended otherwise, and one whose process was killed while it wrote."""
    handle = application.store.create(
        owner, title="Endings", config=ContextConfig(False, 3000, "sliding_window", 4)
    )
    turn = handle.begin("What breaks off?")
    handle.finish(replace(turn.answer, content="Half of", status=MessageStatus.INTERRUPTED))
    turn = handle.begin("What fails?")
    handle.finish(
        replace(turn.answer, status=MessageStatus.FAILED, error="The model did not answer.")
    )
    again = handle.begin_again(turn.answer.index)
    handle.finish(replace(again.answer, content="The second try.", status=MessageStatus.COMPLETE))
    handle.append(
        [ImportedMessage("user", "Erase this."), ImportedMessage("assistant", "It is secret.")], []
    )
    handle.erase(5)
    turn = handle.begin("What is told of an answer?")
    handle.finish(
        replace(
            turn.answer,
            content=EVERYTHING_SAID.text,
            answer=EVERYTHING_SAID,
            resolved_query="q",
            is_followup=True,
        )
    )
    handle.save_vectors({6: np.array([0.6, 0.8], dtype=np.float32)})
    turn = handle.begin("What is being written?")
    handle.tell(turn.answer.index, "So far it is", lambda: None)
    return handle.id


def jobs_in_flight(application, client, owner, session):
    """One done, one failed, two that wait, one that a killed process had begun, a compaction."""
    queue = application.jobs
    queue.submit_ingest("done.md", b"# Done\n\nThis upload came in long ago.\n", owner=owner)
    queue.submit_ingest("broken.pdf", b"%PDF-1.4 nothing", owner=owner)
    queue.run_waiting()
    waiting = queue.submit_ingest(
        "waiting.md", b"# Waiting\n\nThe lighthouse has 217 steps.\n", owner=owner
    )
    begun = queue.submit_ingest("begun.md", b"# Begun\n\nThe ferry leaves at 6:40.\n", owner=owner)
    queue._queue.table.claim(begun.id)
    queue.submit_compaction(application.store.open(session, owner=owner))
    return {"waiting": waiting.id, "begun": begun.id}


def people(application, owner):
    now = datetime(2026, 11, 1, 12, tzinfo=UTC)
    with writing(application.engine) as connection:
        connection.execute(
            insert(logins).values(
                id="a" * 64,
                owner=owner,
                credential="b" * 64,
                created_at=now,
                last_used_at=now,
                expires_at=now + timedelta(days=3650),
                address="127.0.0.1",
                agent="Firefox",
                groups=["staff"],
            )
        )
        connection.execute(
            insert(audit).values(
                at=now, owner=owner, action="login", subject="", address="127.0.0.1"
            )
        )


def plain(value):
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat()
    if isinstance(value, bytes | memoryview):
        return "base64:" + base64.b64encode(bytes(value)).decode()
    return value


def rows(engine):
    found = {}
    with reading(engine) as connection:
        for table in metadata.sorted_tables:
            if table.name in ("measurements", "embedding_claims"):
                continue
            order = list(table.primary_key.columns)
            found[table.name] = [
                {key: plain(value) for key, value in row._mapping.items()}
                for row in connection.execute(select(table).order_by(*order))
            ]
    return found


def answers(client):
    def get(path):
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        return answer.get_json()

    told = {
        path: get(path)
        for path in (
            "/api/v1/sessions",
            "/api/v1/documents",
            "/api/v1/tables",
            "/api/v1/collections",
            "/api/v1/sources",
        )
    }
    for each in told["/api/v1/sessions"]["sessions"]:
        base = f"/api/v1/sessions/{each['id']}"
        for path in ("", "/messages", "/sources", "/summaries", "/search?q=Aero"):
            told[base + path] = get(base + path)
    for each in told["/api/v1/tables"]["tables"]:
        told[f"/api/v1/tables/{each['id']}"] = get(f"/api/v1/tables/{each['id']}")
    for each in told["/api/v1/documents"]["documents"]:
        told[f"/api/v1/documents/{each['id']}"] = get(f"/api/v1/documents/{each['id']}")
    return told


def main(folder, url=None):
    folder.mkdir(parents=True, exist_ok=True)
    sessions = {"database_url": url} if url else {}
    plain_settings = Settings(
        data_dir=folder / "var", sessions=sessions, sources={"folders": [str(folder / "notes")]}
    )
    application = build(plain_settings)
    client = create_app(application).test_client()
    documents(application, folder)
    collection = collection_of_its_own(application, client)
    sync(application, client, folder, collection)
    first = without_model(client)
    owner = read_owner(application, first)
    session = long_session(application, client, owner)
    application.stop()
    with OpenAIServer() as server:
        application = build(
            plain_settings.model_copy(
                update={
                    "llm": type(plain_settings.llm)(
                        base_url=server.url, model="fake", max_retries=0
                    )
                }
            )
        )
        client = create_app(application).test_client()
        with_one = with_model(client, server)
        judged(application, with_one, owner)
        clients(client, server)
        application.stop()
    application = build(plain_settings)
    client = create_app(application).test_client()
    endings(application, owner)
    in_flight = jobs_in_flight(application, client, owner, session)
    people(application, owner)
    expected = {
        "owner": owner,
        "in_flight": in_flight,
        "rows": rows(application.engine),
        "answers": answers(client),
    }
    text = json.dumps(expected, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / "expected.json").write_text(text + "\n", encoding="utf-8")
    application.stop()


def read_owner(application, session):
    from rag.database import sessions

    with reading(application.engine) as connection:
        return connection.execute(
            select(sessions.c.owner).where(sessions.c.id == session)
        ).scalar_one()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
