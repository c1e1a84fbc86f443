package kconform;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** A timer whose tasks run when the harness says so, as SystemTimer runs them. */
final class LockTimer implements Timer {
  private final Time clock;
  private final List<TimerTaskEntry> entries = new ArrayList<>();

  LockTimer(Time clock) {
    this.clock = clock;
  }

  @Override
  public void add(TimerTask task) {
    entries.add(new TimerTaskEntry(task, clock.hiResClockMs() + task.delayMs));
  }

  boolean isPending(TimerTask task) {
    return entries.stream().anyMatch(entry -> entry.timerTask == task && !entry.cancelled());
  }

  /** The task's time is over; its entry stays the task's own, as in SystemTimer. */
  void fire(TimerTask task) {
    if (task == null || !isPending(task)) {
      throw new Broker.Refused("no such timer runs");
    }
    entries.removeIf(entry -> entry.timerTask == task);
    task.run();
  }

  @Override
  public boolean advanceClock(long timeoutMs) {
    return false;
  }

  @Override
  public int size() {
    return entries.size();
  }

  @Override
  public void close() {}
}
