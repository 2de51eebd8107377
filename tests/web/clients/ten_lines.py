import sys

from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="any", max_retries=0)
messages = [{"role": "user", "content": sys.argv[2]}]
for chunk in client.chat.completions.create(model="groundnote", messages=messages, stream=True):
    sys.stdout.write(chunk.choices[0].delta.content or "")
