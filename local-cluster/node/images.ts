// Images into the node's containerd: nothing is pulled. Called by start.ts, and by test/cluster for the images of what is tested.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const exec = promisify(execFile);

const importTar = async (socket: string, folder: string): Promise<void> => {
  const tar = `${folder}.tar`;
  try {
    await exec('tar', ['-C', folder, '-cf', tar, '.']);
    await exec('ctr', ['--address', socket, '--namespace', 'k8s.io', 'images', 'import', tar]);
  } finally {
    await rm(tar, { force: true });
  }
};

const withFolder = async (use: (folder: string) => Promise<void>): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), 'bullion-image-'));
  try {
    await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

interface Index {
  readonly manifests: readonly object[];
}

/** An OCI layout under a full name, such as `docker.io/bullion/functions:0.1.0`. */
export const importLayout = (socket: string, layoutDir: string, name: string): Promise<void> =>
  withFolder(async (folder) => {
    await cp(layoutDir, folder, { recursive: true });
    const file = join(folder, 'index.json');
    const index = JSON.parse(await readFile(file, 'utf8')) as Index;
    const annotations = { 'io.containerd.image.name': name };
    const manifests = index.manifests.map((manifest) => ({ ...manifest, annotations }));
    await writeFile(file, JSON.stringify({ ...index, manifests }));
    await importTar(socket, folder);
  });

/** Beside the program: names of files in the root folder with where they are, and variables. */
interface More {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: readonly string[];
}

/** An image of one static program, as `docker save` would write it. */
export const importProgram = (socket: string, program: string, name: string, more: More = {}): Promise<void> =>
  withFolder(async (folder) => {
    const root = join(folder, 'root');
    await mkdir(root);
    for (const [file, from] of Object.entries({ ...more.files, program })) await copyFile(from, join(root, file));
    await exec('tar', ['-C', root, '--owner=0', '--group=0', '-cf', join(folder, 'layer.tar'), '.']);
    await rm(root, { recursive: true });
    const diff = createHash('sha256')
      .update(await readFile(join(folder, 'layer.tar')))
      .digest('hex');
    const config = {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Entrypoint: ['/program'], User: '65534:65534', Env: more.env ?? [] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${diff}`] },
    };
    await writeFile(join(folder, 'config.json'), JSON.stringify(config));
    const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }];
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
    await importTar(socket, folder);
  });
