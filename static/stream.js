// Server-sent events out of requests of any kind, which EventSource cannot make.
import { reasonOf } from "./parts.js";

/** Yields {name, values, id} for each event; throws what the server refused with. */
export function events(url, body) {
  return read(fetch(url, {
    method: "POST",
    headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }));
}

/** Those of an answer that is being written, behind the last one that was seen. */
export function eventsAgain(url, lastId) {
  const headers = { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
  return read(fetch(url, { headers }));
}

async function* read(request) {
  const response = await request;
  if (!response.ok) throw Object.assign(new Error(await reasonOf(response)), { isRefusal: true });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const event = parsed(frame);
      if (event) yield event;
    }
  }
}

function parsed(frame) {
  let name = "message";
  let id = null;
  const lines = [];
  for (const line of frame.split("\n")) {
    if (line.startsWith("id: ")) id = line.slice(4);
    if (line.startsWith("event: ")) name = line.slice(7);
    if (line.startsWith("data: ")) lines.push(line.slice(6));
  }
  return lines.length ? { name, id, values: JSON.parse(lines.join("\n")) } : null;
}
