package kconform;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** A timer whose tasks run when the harness says so, and never by themselves. */
final class GroupTimers implements Timer {
  private final List<TimerTaskEntry> entries = new ArrayList<>();
  private final Consumer<TimerTask> watch;

  GroupTimers() {
    this(task -> {});
  }

  /** `watch` is told of each task that is added. */
  GroupTimers(Consumer<TimerTask> watch) {
    this.watch = watch;
  }

  @Override
  public void add(TimerTask task) {
    watch.accept(task);
    entries.add(new TimerTaskEntry(task, task.delayMs));
  }

  /** Tasks that are neither over nor cancelled, oldest first. */
  List<TimerTask> pending() {
    entries.removeIf(TimerTaskEntry::cancelled);
    return entries.stream().map(entry -> entry.timerTask).toList();
  }

  /** The task's time is over, as SystemTimer.addTimerTaskEntry takes it. */
  void fire(TimerTask task) {
    entries.removeIf(entry -> entry.timerTask == task);
    task.run();
  }

  @Override
  public boolean advanceClock(long timeoutMs) {
    return false;
  }

  @Override
  public int size() {
    return pending().size();
  }

  @Override
  public void close() {
    entries.clear();
  }
}
