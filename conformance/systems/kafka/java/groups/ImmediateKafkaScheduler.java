package kconform;

import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.server.util.KafkaScheduler;

/** Takes the place of a scheduler that Kafka makes for itself: no thread, and no waiting. */
final class ImmediateKafkaScheduler extends KafkaScheduler {
  private final Virtual.ImmediateScheduler immediate = new Virtual.ImmediateScheduler();

  ImmediateKafkaScheduler() {
    super(1);
  }

  @Override
  public void startup() {}

  @Override
  public void shutdown() {}

  @Override
  public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
    return immediate.schedule(name, task, delayMs, periodMs);
  }
}
