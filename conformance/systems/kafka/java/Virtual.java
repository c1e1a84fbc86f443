package kconform;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/** Time that passes when the harness says so, and schedulers without threads. */
final class Virtual {
  private Virtual() {}

  /** A clock that stands still until it is told to sleep. */
  static final class Clock implements Time {
    static final long START = 1_000_000;
    private long now = START;

    @Override
    public long milliseconds() {
      return now;
    }

    @Override
    public long nanoseconds() {
      return now * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
      now += ms;
    }

    // An abstract method in 3.x, a default one later. Nothing may wait: there is nobody to wake it.
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
      throw new IllegalStateException("a step of the bridge waits for an object");
    }
  }

  /** A scheduler without threads. */
  abstract static class Threadless implements Scheduler {
    @Override
    public void startup() {}

    @Override
    public void shutdown() {}

    @Override
    public void resizeThreadPool(int size) {}
  }

  /** Runs at once what is to run once and without delay; what is periodic or late never runs. */
  static final class ImmediateScheduler extends Threadless {
    @Override
    public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
      if (delayMs <= 0 && periodMs <= 0) {
        task.run();
      }
      return Done.DONE;
    }
  }

  /** A timer of purgatories: nothing that the bridge calls is parked. */
  static final class NoTimer implements Timer {
    private Stepping stopping;

    /** This step stands still where it next asks how many operations wait; null: none does. */
    void stop(Stepping step) {
      stopping = step;
    }

    @Override
    public void add(TimerTask task) {}

    @Override
    public boolean advanceClock(long timeoutMs) {
      return false;
    }

    @Override
    public int size() {
      Stepping step = stopping;
      if (step != null && step.isRunning()) {
        stopping = null;
        try {
          step.ask(this);
        } catch (InterruptedException stopped) {
          Thread.currentThread().interrupt();
        }
      }
      return 0;
    }

    @Override
    public void close() {}
  }

  /** What a scheduler without threads gives for a task. */
  static final class Done extends CompletableFuture<Object>
      implements ScheduledFuture<Object> {
    static final Done DONE = new Done();

    @Override
    public long getDelay(java.util.concurrent.TimeUnit unit) {
      return 0;
    }

    @Override
    public int compareTo(java.util.concurrent.Delayed other) {
      return 0;
    }
  }
}
