import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "any", maxRetries: 0 });
const messages = [{ role: "user", content: process.argv[3] }];
const stream = await client.chat.completions.create({ model: "groundnote", messages, stream: true });
for await (const chunk of stream) process.stdout.write(chunk.choices[0].delta.content ?? "");
