// Server-sent events out of a POST request, which EventSource cannot make.
import { reasonOf } from "./parts.js";

/** Yields {name, values} for each event; throws what the server refused with. */
export async function* events(url, body, signal) {
  const response = await fetch(url, {
    method: "POST",
    signal,
    headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
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
  const lines = [];
  for (const line of frame.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    if (line.startsWith("data: ")) lines.push(line.slice(6));
  }
  return lines.length ? { name, values: JSON.parse(lines.join("\n")) } : null;
}
