// The tutorial's store in Go, and the adapter that lets kconform drive it.
//
//	go build -o store docs/adapters/go/store.go
//	kconform adapter-check ./store --model docs/tutorial/models/store.toml
//	kconform replay docs/tutorial/models/store.toml --system exec:./store
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

// ---- The implementation: it knows nothing of kconform. ------------------------------------

type entry struct {
	value   string
	present bool
	version int
}

// Store keeps what a key holds, and its version.
type Store struct{ entries map[string]entry }

func NewStore() *Store { return &Store{entries: map[string]entry{}} }

func (s *Store) Get(key string) (string, bool) { e := s.entries[key]; return e.value, e.present }

func (s *Store) Version(key string) int { return s.entries[key].version }

func (s *Store) Put(key, value string) {
	s.entries[key] = entry{value, true, s.Version(key) + 1}
}

// Remove keeps the version, so that no version ever comes twice.
func (s *Store) Remove(key string) error {
	if !s.entries[key].present {
		return fmt.Errorf("%s holds nothing", key)
	}
	s.entries[key] = entry{version: s.Version(key) + 1}
	return nil
}

func (s *Store) CompareAndSet(key string, expected int, value string) bool {
	if s.Version(key) != expected {
		return false
	}
	s.Put(key, value)
	return true
}

// ---- The adapter: actions to calls, the store's state to the specification's variables. ----

// A refusal is what the store cannot do in its present state.
type refusal struct{ error }

type adapter struct {
	keys   []string
	store  *Store
	answer string
}

func (a *adapter) hello(constants map[string]json.RawMessage) (any, error) {
	var keys struct {
		Set []string `json:"#set"`
	}
	if err := json.Unmarshal(constants["Keys"], &keys); err != nil || len(keys.Set) == 0 {
		return nil, refusal{fmt.Errorf("it needs the constant Keys, a set of strings")}
	}
	a.keys = keys.Set
	return map[string]any{
		"protocol":      1,
		"name":          "store in Go",
		"specification": "Store",
		"variables":     []string{"value", "version", "answer"}, // `writes` is a ghost
	}, nil
}

func (a *adapter) reset() { a.store, a.answer = NewStore(), "none" }

func (a *adapter) apply(action string, arguments []json.RawMessage) error {
	var key, value string
	var expected int
	var err error
	switch action {
	case "Put":
		if err = read(arguments, &key, &value); err == nil {
			a.store.Put(key, value)
		}
	case "Remove":
		if err = read(arguments, &key); err == nil {
			if failed := a.store.Remove(key); failed != nil {
				return refusal{failed}
			}
		}
	case "CompareAndSet":
		if err = read(arguments, &key, &expected, &value); err == nil {
			a.answer = "conflict"
			if a.store.CompareAndSet(key, expected, value) {
				a.answer = "written"
			}
			return nil
		}
	default:
		return fmt.Errorf("there is no action %s", action)
	}
	a.answer = "none"
	return err
}

func read(arguments []json.RawMessage, targets ...any) error {
	if len(arguments) != len(targets) {
		return fmt.Errorf("%d arguments instead of %d", len(arguments), len(targets))
	}
	for i, target := range targets {
		if err := json.Unmarshal(arguments[i], target); err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return nil
}

func (a *adapter) observe() any {
	value, version := map[string]string{}, map[string]int{}
	for _, key := range a.keys {
		value[key], version[key] = "absent", a.store.Version(key)
		if held, present := a.store.Get(key); present {
			value[key] = held
		}
	}
	return map[string]any{"value": value, "version": version, "answer": a.answer}
}

// ---- The protocol: the same for every adapter in Go. ---------------------------------------

type command struct {
	Command   string                     `json:"command"`
	Constants map[string]json.RawMessage `json:"constants"`
	Action    string                     `json:"action"`
	Arguments []json.RawMessage          `json:"arguments"`
}

type request struct {
	ID       int       `json:"id"`
	Commands []command `json:"commands"`
}

type reply struct {
	ID      int              `json:"id"`
	Answers []map[string]any `json:"answers"`
}

func (a *adapter) carryOut(c command) (result any, err error) {
	if c.Command == "hello" {
		return a.hello(c.Constants)
	}
	if a.keys == nil {
		return nil, fmt.Errorf("%s before hello", c.Command)
	}
	if a.store == nil && c.Command != "reset" {
		return nil, fmt.Errorf("%s before reset", c.Command)
	}
	switch c.Command {
	case "reset":
		a.reset()
	case "apply":
		err = a.apply(c.Action, c.Arguments)
	case "observe":
		result = a.observe()
	default:
		err = fmt.Errorf("there is no command %q", c.Command)
	}
	return result, err
}

func (a *adapter) answerTo(c command) (answer map[string]any) {
	defer func() {
		if raised := recover(); raised != nil {
			answer = map[string]any{"exception": fmt.Sprintf("%v\n%s", raised, debug.Stack())}
		}
	}()
	result, err := a.carryOut(c)
	if refused, is := err.(refusal); is {
		return map[string]any{"refused": refused.Error()}
	}
	if err != nil {
		return map[string]any{"protocol_error": err.Error()}
	}
	return map[string]any{"ok": result}
}

func (a *adapter) line(text []byte) reply {
	var asked request
	if err := json.Unmarshal(text, &asked); err != nil {
		return reply{0, []map[string]any{{"protocol_error": err.Error()}}}
	}
	answers := []map[string]any{}
	for _, c := range asked.Commands {
		answer := a.answerTo(c)
		answers = append(answers, answer)
		if _, done := answer["ok"]; !done {
			break
		}
	}
	return reply{asked.ID, answers}
}

func main() {
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	a := &adapter{}
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return // the conversation has ended
		}
		if err := out.Encode(a.line(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
