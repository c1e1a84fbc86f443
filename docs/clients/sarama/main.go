// Sarama's consumer group for `kconform client`: BOOTSTRAP TOPIC GROUP [INSTANCE].
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

// handler writes a line when a session of the group begins, and when it ends.
type handler struct{ callbacks *os.File }

func (h handler) tell(event string, session sarama.ConsumerGroupSession) error {
	partitions := [][]any{}
	for topic, numbers := range session.Claims() {
		for _, number := range numbers {
			partitions = append(partitions, []any{topic, number})
		}
	}
	line, err := json.Marshal(map[string]any{"event": event, "partitions": partitions})
	if err != nil {
		return err
	}
	_, err = h.callbacks.Write(append(line, '\n'))
	return err
}

func (h handler) Setup(session sarama.ConsumerGroupSession) error {
	return h.tell("assigned", session)
}

func (h handler) Cleanup(session sarama.ConsumerGroupSession) error {
	return h.tell("revoked", session)
}

func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

// fenced says whether a heartbeat has told that another process has the instance id: that is an error
// of the group, and Consume ends without one.
func fenced(group sarama.ConsumerGroup) bool {
	for {
		select {
		case err := <-group.Errors():
			if errors.Is(err, sarama.ErrFencedInstancedId) {
				return true
			}
		default:
			return false
		}
	}
}

func main() {
	callbacks, err := os.OpenFile(os.Getenv("KCONFORM_CALLBACKS"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		panic(err)
	}
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Return.Errors = true
	config.Consumer.Group.Heartbeat.Interval = 250 * time.Millisecond
	config.Consumer.Offsets.AutoCommit.Interval = 300 * time.Millisecond
	if len(os.Args) > 4 {
		config.Consumer.Group.InstanceId = os.Args[4]
	}
	group, err := sarama.NewConsumerGroup([]string{os.Args[1]}, os.Args[3], config)
	if err != nil {
		panic(err)
	}
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ended.Err() == nil {
		err := group.Consume(ended, []string{os.Args[2]}, handler{callbacks})
		if errors.Is(err, sarama.ErrFencedInstancedId) || fenced(group) {
			os.Exit(1)
		}
	}
	if err := group.Close(); err != nil {
		panic(err)
	}
}
