package kconform;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;

/** A segment file's channel that keeps count of the bytes which an fsync has covered. */
final class FlushedChannel extends FileChannel {
  /** The bytes of a segment file that a power loss does not take. */
  static final class Durable {
    long bytes;
  }

  /** Whether the disk refuses to flush. */
  interface Failing {
    boolean fails();
  }

  private final FileChannel channel;
  private final Durable durable;
  private final Failing disk;

  FlushedChannel(FileChannel channel, Durable durable, Failing disk) throws IOException {
    this.channel = channel;
    this.durable = durable;
    this.disk = disk;
    durable.bytes = Math.min(durable.bytes, channel.size());
  }

  @Override
  public void force(boolean metaData) throws IOException {
    if (disk.fails()) {
      throw new IOException("input/output error");
    }
    channel.force(metaData);
    durable.bytes = channel.size();
  }

  @Override
  public FileChannel truncate(long size) throws IOException {
    channel.truncate(size);
    durable.bytes = Math.min(durable.bytes, size);
    return this;
  }

  // ---- as it is ------------------------------------------------------------------------------

  @Override
  public int read(ByteBuffer target) throws IOException {
    return channel.read(target);
  }

  @Override
  public long read(ByteBuffer[] targets, int offset, int length) throws IOException {
    return channel.read(targets, offset, length);
  }

  @Override
  public int read(ByteBuffer target, long position) throws IOException {
    return channel.read(target, position);
  }

  @Override
  public int write(ByteBuffer source) throws IOException {
    return channel.write(source);
  }

  @Override
  public long write(ByteBuffer[] sources, int offset, int length) throws IOException {
    return channel.write(sources, offset, length);
  }

  @Override
  public int write(ByteBuffer source, long position) throws IOException {
    return channel.write(source, position);
  }

  @Override
  public long position() throws IOException {
    return channel.position();
  }

  @Override
  public FileChannel position(long newPosition) throws IOException {
    channel.position(newPosition);
    return this;
  }

  @Override
  public long size() throws IOException {
    return channel.size();
  }

  @Override
  public long transferTo(long position, long count, WritableByteChannel target) throws IOException {
    return channel.transferTo(position, count, target);
  }

  @Override
  public long transferFrom(ReadableByteChannel source, long position, long count)
      throws IOException {
    return channel.transferFrom(source, position, count);
  }

  @Override
  public MappedByteBuffer map(MapMode mode, long position, long size) throws IOException {
    return channel.map(mode, position, size);
  }

  @Override
  public FileLock lock(long position, long size, boolean shared) throws IOException {
    return channel.lock(position, size, shared);
  }

  @Override
  public FileLock tryLock(long position, long size, boolean shared) throws IOException {
    return channel.tryLock(position, size, shared);
  }

  @Override
  protected void implCloseChannel() throws IOException {
    channel.close();
  }
}
