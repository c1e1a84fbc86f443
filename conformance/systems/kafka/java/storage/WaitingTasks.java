package kconform;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ScheduledFuture;

/**
 * A broker's scheduler whose tasks wait until they are run; a kill drops them with it.
 *
 * <p>Tasks that the specification does not tell apart from the step that gives them run at once if
 * they have no delay, else never. Periodic ones never run: their methods are called.
 */
final class WaitingTasks extends Virtual.Threadless {
  private static final List<String> KEPT =
      List.of("flush-log", "leader-epoch-cache-flush", "delete-file");

  private record Task(String name, Runnable code) {}

  private final List<Task> waiting = new ArrayList<>();

  @Override
  public ScheduledFuture<?> schedule(String name, Runnable code, long delayMs, long periodMs) {
    // The name of a cache's flush ends with that of its partition.
    String kind = KEPT.stream().filter(name::startsWith).findFirst().orElse(null);
    if (kind != null) {
      waiting.add(new Task(kind, code));
    } else if (delayMs <= 0 && periodMs <= 0) {
      code.run();
    }
    return Virtual.Done.DONE;
  }

  /** Of the tasks not yet run, oldest first. */
  List<String> names() {
    return waiting.stream().map(Task::name).toList();
  }

  /** Runs the task of that place, from 1. */
  void run(int number) {
    if (number > waiting.size()) {
      throw new Broker.Refused(waiting.size() + " tasks wait");
    }
    waiting.remove(number - 1).code.run();
  }
}
