// The services of a CSI driver over files and loop devices: https://github.com/container-storage-interface/spec. Called by main.ts.
import { driverName } from '#local-cluster/csi-driver/programs.ts';
import {
  growDevice,
  publishBlock,
  publishFileSystem,
  unpublish,
  whileFrozen,
} from '#local-cluster/csi-driver/devices.ts';
import { CallError, type Methods } from '#local-cluster/csi-driver/service.ts';
import type { Origin, Snapshot, Storage } from '#local-cluster/csi-driver/storage.ts';

const topologyKey = `${driverName}/node`;

export const identity: Methods = {
  GetPluginInfo: async () => ({ name: driverName, vendor_version: '1' }),
  GetPluginCapabilities: async () => ({
    capabilities: [
      { service: { type: 'CONTROLLER_SERVICE' } },
      { service: { type: 'VOLUME_ACCESSIBILITY_CONSTRAINTS' } },
      { volume_expansion: { type: 'ONLINE' } },
    ],
  }),
  Probe: async () => ({ ready: { value: true } }),
};

interface Range {
  readonly required_bytes: number;
  readonly limit_bytes: number;
}

interface CreateVolume {
  readonly name: string;
  readonly capacity_range: Range | null;
  readonly volume_content_source: {
    readonly snapshot?: { readonly snapshot_id: string };
    readonly volume?: { readonly volume_id: string };
  } | null;
}

const unit = 4096;
const bytesOf = (range: Range | null): number => Math.ceil((range?.required_bytes || 2 ** 30) / unit) * unit;

const originOf = ({ volume_content_source: source }: CreateVolume): Origin | undefined => {
  if (source?.snapshot !== undefined) return { kind: 'snapshot', id: source.snapshot.snapshot_id };
  return source?.volume === undefined ? undefined : { kind: 'volume', id: source.volume.volume_id };
};

const timestamp = (at: Date): object => ({
  seconds: Math.floor(at.getTime() / 1000),
  nanos: (at.getTime() % 1000) * 1e6,
});

const describe = ({ id, volume, bytes, createdAt }: Snapshot): object => ({
  snapshot: {
    snapshot_id: id,
    source_volume_id: volume,
    size_bytes: bytes,
    creation_time: timestamp(createdAt),
    ready_to_use: true,
  },
});

/** Callers repeat a slow call: the first one continues, and the repeated ones fail with ABORTED meanwhile. */
const createTurns = () => {
  const busy = new Set<string>();
  return async <T>(id: string, work: () => Promise<T>): Promise<T> => {
    if (busy.has(id)) throw new CallError('ABORTED', `${id}: another call for it is not finished`);
    busy.add(id);
    try {
      return await work();
    } finally {
      busy.delete(id);
    }
  };
};

export const controller = (storage: Storage, node: string): Methods => {
  const inTurn = createTurns();
  const sizeOfOrigin = async ({ kind, id }: Origin): Promise<number> => {
    const bytes = kind === 'volume' ? await storage.sizeOf(id) : (await storage.findSnapshot(id))?.bytes;
    if (bytes === undefined) throw new CallError('NOT_FOUND', `${kind} ${id} does not exist`);
    return bytes;
  };
  const fill = async (name: string, bytes: number, origin: Origin | undefined): Promise<void> => {
    if (origin === undefined) return storage.create(name, bytes);
    if ((await sizeOfOrigin(origin)) > bytes)
      throw new CallError('OUT_OF_RANGE', `${origin.kind} ${origin.id} is larger than the ${bytes} bytes of ${name}`);
    if (origin.kind === 'snapshot') return storage.copy(name, origin, bytes);
    return whileFrozen(storage.pathOf(origin.id), () => storage.copy(name, origin, bytes));
  };
  return {
    ControllerGetCapabilities: async () => ({
      capabilities: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT', 'CLONE_VOLUME', 'EXPAND_VOLUME'].map((type) => ({
        rpc: { type },
      })),
    }),
    CreateVolume: (request: CreateVolume) =>
      inTurn(request.name, async () => {
        const { name, volume_content_source } = request;
        const bytes = bytesOf(request.capacity_range);
        const present = await storage.sizeOf(name);
        if (present !== undefined && present < bytes)
          throw new CallError('ALREADY_EXISTS', `${name} exists with ${present} bytes, fewer than ${bytes}`);
        if (present === undefined) await fill(name, bytes, originOf(request));
        return {
          volume: {
            volume_id: name,
            capacity_bytes: present ?? bytes,
            content_source: volume_content_source,
            accessible_topology: [{ segments: { [topologyKey]: node } }],
          },
        };
      }),
    DeleteVolume: ({ volume_id: id }: { volume_id: string }) =>
      inTurn(id, async () => {
        await storage.remove(id);
        return {};
      }),
    ValidateVolumeCapabilities: async (request: object) => ({ confirmed: request }),
    CreateSnapshot: ({ name: id, source_volume_id: volume }: { name: string; source_volume_id: string }) =>
      inTurn(id, async () => {
        const present = await storage.findSnapshot(id);
        if (present !== undefined) return describe(present);
        await sizeOfOrigin({ kind: 'volume', id: volume });
        let made: Snapshot | undefined;
        await whileFrozen(storage.pathOf(volume), async () => void (made = await storage.snapshot(id, volume)));
        return made === undefined ? {} : describe(made);
      }),
    DeleteSnapshot: ({ snapshot_id: id }: { snapshot_id: string }) =>
      inTurn(id, async () => {
        await storage.removeSnapshot(id);
        return {};
      }),
    ControllerExpandVolume: ({ volume_id: id, capacity_range: range }: { volume_id: string; capacity_range: Range }) =>
      inTurn(id, async () => {
        const bytes = Math.max(bytesOf(range), await sizeOfOrigin({ kind: 'volume', id }));
        await storage.grow(id, bytes);
        return { capacity_bytes: bytes, node_expansion_required: true };
      }),
  };
};

interface Publish {
  readonly volume_id: string;
  readonly target_path: string;
  readonly readonly: boolean;
  readonly volume_capability: { readonly block?: object };
}

export const node = (storage: Storage, name: string): Methods => {
  const inTurn = createTurns();
  return {
    NodeGetCapabilities: async () => ({ capabilities: [{ rpc: { type: 'EXPAND_VOLUME' } }] }),
    NodeGetInfo: async () => ({ node_id: name, accessible_topology: { segments: { [topologyKey]: name } } }),
    NodePublishVolume: ({
      volume_id: id,
      target_path: target,
      readonly: isReadOnly,
      volume_capability: wanted,
    }: Publish) =>
      inTurn(id, async () => {
        if ((await storage.sizeOf(id)) === undefined) throw new CallError('NOT_FOUND', `volume ${id} does not exist`);
        const publish = wanted.block === undefined ? publishFileSystem : publishBlock;
        await publish({ file: storage.pathOf(id), target, isReadOnly });
        return {};
      }),
    NodeUnpublishVolume: ({ volume_id: id, target_path: target }: Publish) =>
      inTurn(id, async () => {
        await unpublish(storage.pathOf(id), target);
        return {};
      }),
    NodeExpandVolume: ({ volume_id: id }: Publish) =>
      inTurn(id, async () => {
        await growDevice(storage.pathOf(id));
        return { capacity_bytes: (await storage.sizeOf(id)) ?? 0 };
      }),
  };
};

/** What the kubelet asks of a plugin that it has found. */
export const registration = (socket: string): Methods => ({
  GetInfo: async () => ({ type: 'CSIPlugin', name: driverName, endpoint: socket, supported_versions: ['1.0.0'] }),
  NotifyRegistrationStatus: async ({
    plugin_registered: isRegistered,
    error,
  }: {
    plugin_registered: boolean;
    error: string;
  }) => {
    if (!isRegistered) throw new CallError('FAILED_PRECONDITION', `the kubelet does not register the driver: ${error}`);
    return {};
  },
});
