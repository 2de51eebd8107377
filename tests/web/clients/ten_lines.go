package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	type message map[string]string
	body, _ := json.Marshal(map[string]any{"model": "groundnote", "stream": true, "messages": []message{{"role": "user", "content": os.Args[2]}}})
	response, err := http.Post(os.Args[1]+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan() && lines.Text() != "data: [DONE]"; {
		var chunk struct{ Choices []struct{ Delta struct{ Content string } } }
		if json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &chunk) == nil {
			fmt.Print(chunk.Choices[0].Delta.Content)
		}
	}
}
