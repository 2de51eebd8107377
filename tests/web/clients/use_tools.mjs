// Agents of the AI SDK with a tool of their own, three turns each, and objects; writes JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, isStepCount, streamObject, streamText, tool } from "ai";
import { z } from "zod";

const baseURL = process.argv[2];
const questions = ["How heavy is the Aero 5?", "And the Aero 5 Pro?", "How long does the battery last?"];
const schema = z.object({ said: z.string(), left: z.number() });
const made = {};

async function byAiSdk(name, model, streamed) {
  let calls = 0;
  const stock = tool({
    description: "How many of a product are left.",
    inputSchema: z.object({ of: z.string() }),
    execute: async () => { calls += 1; return 12; },
  });
  const messages = [];
  const texts = [];
  const links = [];
  for (const question of questions) {
    messages.push({ role: "user", content: `${question} (${name})` });
    const asked = { model, messages, tools: { stock }, stopWhen: isStepCount(5), maxRetries: 0 };
    const turn = streamed ? streamText(asked) : await generateText(asked);
    if (streamed) for await (const _ of turn.textStream);
    texts.push(await turn.text);
    links.push(...(await turn.sources).map((each) => each.url));
    messages.push(...(await turn.response).messages);
  }
  const prompt = `How heavy? (${name}, as a form)`;
  let form;
  if (streamed) {
    const stream = streamObject({ model, schema, prompt, maxRetries: 0 });
    for await (const _ of stream.partialObjectStream);
    form = await stream.object;
  } else {
    form = (await generateObject({ model, schema, prompt, maxRetries: 0 })).object;
  }
  made[name] = { texts, calls, form, links };
}

const provider = createOpenAI({ baseURL, apiKey: "any" });
await byAiSdk("ai sdk", provider.chat("groundnote"), false);
await byAiSdk("ai sdk, responses", provider.responses("groundnote"), false);
await byAiSdk("ai sdk, streamed", provider.chat("groundnote"), true);
await byAiSdk("ai sdk, responses, streamed", provider.responses("groundnote"), true);
process.stdout.write(JSON.stringify(made));
