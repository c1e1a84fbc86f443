package kconform;

import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;

/**
 * The lock of TransactionStateManager, at which a step of the harness can stand still.
 *
 * <p>A coordinator that fences a transaction marks it under the metadata's lock, and takes the lock
 * again to end it. In between the thread asks for this lock; others may come first.
 */
final class SteppingLock extends ReentrantReadWriteLock {
  private final ReadLock reading = new SteppingReadLock(this);
  private volatile Stepping stopping;
  private volatile BooleanSupplier where;

  /** This step stands still where it next asks for the lock and `here` holds; null: none does. */
  void stop(Stepping step, BooleanSupplier here) {
    where = here;
    stopping = step;
  }

  @Override
  public ReadLock readLock() {
    return reading;
  }

  private final class SteppingReadLock extends ReadLock {
    SteppingReadLock(ReentrantReadWriteLock lock) {
      super(lock);
    }

    @Override
    public void lock() {
      Stepping step = stopping;
      if (step != null && step.isRunning() && where.getAsBoolean()) {
        stopping = null;
        try {
          step.ask(this);
        } catch (InterruptedException stopped) {
          Thread.currentThread().interrupt();
        }
      }
      super.lock();
    }
  }
}
