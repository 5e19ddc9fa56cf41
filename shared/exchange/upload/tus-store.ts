// tus (resumable uploads, tus.io) on top of the upload Job: the Job's spool is the store, so that any instance of the function can resume.
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { DataStore, ERRORS, Upload } from '@tus/server';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type ExchangeTarget, findTarget } from '#shared/exchange/target.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import { announcedSum, followed, requireSize } from '#shared/exchange/upload/deliver.ts';
import { requireTaken } from '#shared/exchange/harvester.ts';
import { lookAtPiece } from '#shared/exchange/upload/look-ahead.ts';
import { offer } from '#shared/exchange/upload/offer.ts';
import { type OpenUpload, openUpload } from '#shared/exchange/upload/open.ts';
import { arrivedStatus, sendToUpload } from '#shared/exchange/upload/session.ts';
import type { Worker } from '#shared/exchange/worker.ts';
import type { Checksum } from '#shared/transfer/spec.ts';
import type { Announcement } from '#shared/transfer/upload/spool.ts';

type Metadata = Record<string, string | null>;

/** The name contains the size, so that a complete upload is recognized after its Job is gone. */
export const newUploadId = (size: number): string => `${randomBytes(12).toString('hex')}.${size}`;

const sizeOf = (id: string): number => Number(/\.(\d+)$/.exec(id)?.[1] ?? Number.NaN);

const checksumOf = ({ checksum }: Metadata): Checksum | undefined => {
  if (checksum === undefined || checksum === null) return undefined;
  const parsed = parseChecksum(checksum);
  if ('value' in parsed) return parsed.value;
  throw new Problem(400, 'BadRequest', 'checksum in Upload-Metadata must be <algorithm>:<hex>');
};

const diskSizeOf = ({ virtualSize }: Metadata): number | undefined => {
  if (virtualSize === undefined || virtualSize === null) return undefined;
  if (/^\d+$/.test(virtualSize) && Number.isSafeInteger(Number(virtualSize))) return Number(virtualSize);
  throw new Problem(400, 'BadRequest', 'virtualSize in Upload-Metadata must be a number of bytes');
};

const needsDiskSize = (): Problem =>
  new Problem(
    400,
    'SizeUnknown',
    'the volume is created before the file arrives: give the size of its disk in bytes as virtualSize in Upload-Metadata (`qemu-img info` shows them)',
  );

const nothing = Buffer.alloc(0);

export class UploadStore extends DataStore {
  readonly #deps: ExchangeDeps;
  readonly #name: TargetName;
  readonly #signal: AbortSignal;
  #isUnfinished = false;
  override extensions = ['creation', 'creation-with-upload', 'termination'];

  constructor(deps: ExchangeDeps, name: TargetName, signal: AbortSignal) {
    super();
    this.#deps = deps;
    this.#name = name;
    this.#signal = signal;
  }

  /** Whether all of the file has arrived but its result is not known yet. */
  readonly isUnfinished = (): boolean => this.#isUnfinished;
  readonly #find = (): Promise<ExchangeTarget> => findTarget(this.#deps.kube, this.#name);
  readonly #open = (target: ExchangeTarget): Promise<OpenUpload> => openUpload(this.#deps, target, this.#signal);

  override async create(upload: Upload): Promise<Upload> {
    const { size, metadata = {}, id } = upload;
    if (size === undefined)
      throw new Problem(400, 'BadRequest', 'Upload-Length is required: the length of the file in bytes');
    requireSize(size, this.#deps.mostBytes);
    const asked = checksumOf(metadata);
    const { worker, target } = await this.#open(await this.#offered(metadata));
    const creation_date = new Date(this.#deps.now()).toISOString();
    const begins = {
      id,
      length: size,
      metadata: JSON.stringify({ metadata, creation_date }),
      ...announcedSum(asked ?? target.checksum),
      ...followed(target),
    };
    await this.#announce(worker, begins);
    upload.creation_date = creation_date;
    return upload;
  }

  async #offered(metadata: Metadata): Promise<ExchangeTarget> {
    const target = await this.#find();
    const virtualSize = diskSizeOf(metadata);
    if (target.stage === 'unoffered' && virtualSize === undefined) throw needsDiskSize();
    return offer(this.#deps, target, { inspection: { format: 'raw', compression: 'none' }, virtualSize });
  }

  override async getUpload(id: string): Promise<Upload> {
    const target = await this.#find();
    const size = sizeOf(id);
    if (target.stage === 'done') return new Upload({ id, size, offset: size });
    const { state } = await this.#open(target);
    if (state.announced?.id !== id) throw ERRORS.FILE_NO_LONGER_EXISTS;
    const { metadata = {}, creation_date } = JSON.parse(state.announced.metadata ?? '{}') as Partial<Upload>;
    return new Upload({
      id,
      size,
      offset: state.offset,
      metadata,
      ...(creation_date === undefined ? {} : { creation_date }),
    });
  }

  /** The last request is answered when the disk is written and verified, so that the client learns about a failure. */
  override async write(stream: Readable, id: string, offset: number): Promise<number> {
    const { target, worker, state } = await this.#open(await this.#find());
    if (state.announced?.id !== id) throw ERRORS.FILE_NO_LONGER_EXISTS;
    const signal = this.#signal;
    const isDisk = offset === 0 && target.holdsFiles !== true;
    const sent = await sendToUpload(worker, {
      body: isDisk ? await lookAtPiece(stream, sizeOf(id), state.limitBytes) : stream,
      offset,
      isLast: false,
      takesOver: true,
      waits: this.#deps.answerSeconds,
      signal,
    });
    requireTaken(sent);
    this.#isUnfinished = sent.status === arrivedStatus;
    return sent.offset;
  }

  /** Announces a file, or its cancellation, without sending a byte. */
  async #announce(worker: Worker, begins: Announcement): Promise<void> {
    const signal = this.#signal;
    const announced = { body: nothing, offset: 0, begins, isLast: false, takesOver: true, signal };
    requireTaken(await sendToUpload(worker, announced));
  }

  override async remove(id: string): Promise<void> {
    const { worker, state } = await this.#open(await this.#find());
    if (state.announced?.id !== id) throw ERRORS.FILE_NO_LONGER_EXISTS;
    await this.#announce(worker, { id: 'removed' });
  }
}
