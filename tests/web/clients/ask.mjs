// Asks a server by each stock client in JavaScript, and writes what they made of it as JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

const baseURL = process.argv[2];
const question = "How heavy?";
const model = "groundnote";
const asked = { model, messages: [{ role: "user", content: question }] };
const turnsAsked = ["How light?", "And the Pro?", "And the Max?"]; // in one conversation
const made = {};

async function byOpenAI() {
  const client = new OpenAI({ baseURL, apiKey: "any", maxRetries: 0 });
  const { message } = (await client.chat.completions.create(asked)).choices[0];
  let streamed = "";
  let links = [];
  for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
    streamed += chunk.choices[0]?.delta.content ?? "";
    links = chunk.choices[0]?.delta.annotations ?? links;
  }
  const refused = await client.chat.completions
    .create({ ...asked, response_format: { type: "json_object" } })
    .catch((error) => `${error.status} ${error.message}`);
  const urls = (found) => found.map((each) => each.url_citation.url);
  const messages = [];
  const turns = [];
  for (const each of turnsAsked) {
    messages.push({ role: "user", content: each });
    const turn = (await client.chat.completions.create({ model, messages })).choices[0].message;
    messages.push({ role: "assistant", content: turn.content });
    turns.push(...urls(turn.annotations));
  }
  made.openai = { turns, text: message.content, urls: urls(message.annotations), streamed, streamedUrls: urls(links), refused };
}

async function byResponses() {
  const client = new OpenAI({ baseURL, apiKey: "any", maxRetries: 0 });
  const first = await client.responses.create({ model, input: question });
  const next = await client.responses.create({ model, input: "And the Pro?", previous_response_id: first.id });
  const stream = client.responses.stream({ model, input: question });
  const last = await stream.finalResponse();
  const urls = (response) => response.output[0].content[0].annotations.map((each) => each.url);
  const turns = [];
  let previous;
  for (const each of turnsAsked) {
    const turn = await client.responses.create({ model, input: each, previous_response_id: previous });
    turns.push(...urls(turn));
    previous = turn.id;
  }
  made.responses = {
    turns, text: first.output_text, urls: urls(first), streamed: last.output_text, streamedUrls: urls(last),
    goesOn: next.session_id === first.session_id,
  };
}

async function byAiSdk(name, chosen) {
  const told = await generateText({ model: chosen, prompt: question, maxRetries: 0 });
  const stream = streamText({ model: chosen, prompt: question, maxRetries: 0 });
  let streamed = "";
  for await (const delta of stream.textStream) streamed += delta;
  const urls = (sources) => sources.map((each) => each.url);
  const messages = [];
  const turns = [];
  for (const asked of turnsAsked) {
    messages.push({ role: "user", content: asked });
    const turn = await generateText({ model: chosen, messages, maxRetries: 0 });
    messages.push(...turn.response.messages);
    turns.push(...urls(turn.sources));
  }
  made[name] = { turns, text: told.text, urls: urls(told.sources), streamed, streamedUrls: urls(await stream.sources) };
}

const provider = createOpenAI({ baseURL, apiKey: "any" });
await byOpenAI();
await byResponses();
await byAiSdk("ai sdk, chat", provider.chat(model));
await byAiSdk("ai sdk, responses", provider.responses(model));
process.stdout.write(JSON.stringify(made));
