// Renders each line, a text in JSON, as marked does it, plain and with footnotes.
import { createInterface } from "node:readline";
import { Marked } from "marked";
import footnote from "marked-footnote";

const readers = [new Marked(), new Marked().use(footnote())];
for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line);
  console.log(JSON.stringify(readers.map((reader) => reader.parse(text))));
}
