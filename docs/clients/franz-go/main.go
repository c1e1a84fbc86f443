// franz-go's consumer for `kconform client`: BOOTSTRAP TOPIC GROUP [INSTANCE].
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// tell writes a line for each call of the rebalance listener.
func tell(callbacks *os.File, event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
		partitions := [][]any{}
		for topic, numbers := range given {
			for _, number := range numbers {
				partitions = append(partitions, []any{topic, number})
			}
		}
		line, _ := json.Marshal(map[string]any{"event": event, "partitions": partitions})
		callbacks.Write(append(line, '\n'))
	}
}

func main() {
	callbacks, err := os.OpenFile(os.Getenv("KCONFORM_CALLBACKS"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		panic(err)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumeTopics(os.Args[2]),
		kgo.ConsumerGroup(os.Args[3]),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(250 * time.Millisecond),
		kgo.AutoCommitInterval(300 * time.Millisecond),
		// The library's own backoff grows to 5 s: longer than the patience of a quick run.
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.OnPartitionsAssigned(tell(callbacks, "assigned")),
		kgo.OnPartitionsRevoked(tell(callbacks, "revoked")),
		kgo.OnPartitionsLost(tell(callbacks, "lost")),
	}
	if len(os.Args) > 4 && os.Args[4] != "" {
		options = append(options, kgo.InstanceID(os.Args[4]))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ended.Err() == nil {
		for _, failed := range client.PollFetches(ended).Errors() {
			if errors.Is(failed.Err, kerr.FencedInstanceID) {
				os.Exit(1)
			}
		}
	}
	client.Close()
}
