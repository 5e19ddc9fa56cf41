// `node local-cluster/csi-driver/main.ts --protocols <folder> --data <folder> --socket <path> --registration <path>`: the driver of one node.
import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { stderr } from 'node:process';
import { parseArgs } from 'node:util';
import { createServer, listen } from '#local-cluster/csi-driver/service.ts';
import { controller, identity, node, registration } from '#local-cluster/csi-driver/services.ts';
import { openStorage } from '#local-cluster/csi-driver/storage.ts';
import { nodeName } from '#local-cluster/node/layout.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { protocols: text, data: text, socket: text, registration: text } });
const { protocols, data, socket, registration: registrationSocket } = values;
if (protocols === undefined || data === undefined || socket === undefined || registrationSocket === undefined)
  throw new InvalidInput('csi-driver: --protocols, --data, --socket and --registration are needed');

const report = (line: string): void => void stderr.write(`${new Date().toISOString()} ${line}\n`);
const storage = await openStorage(data);
const driver = createServer(
  protocols,
  [
    { protocol: 'csi.proto', name: 'csi.v1.Identity', methods: identity },
    { protocol: 'csi.proto', name: 'csi.v1.Controller', methods: controller(storage, nodeName) },
    { protocol: 'csi.proto', name: 'csi.v1.Node', methods: node(storage, nodeName) },
  ],
  report,
);
const plugin = createServer(
  protocols,
  [{ protocol: 'registration.proto', name: 'pluginregistration.Registration', methods: registration(socket) }],
  report,
);
// The kubelet calls the driver as soon as it finds the plugin.
for (const [server, path] of [
  [driver, socket],
  [plugin, registrationSocket],
] as const) {
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  await listen(server, path);
}
report(`listening on ${socket}`);
process.once('SIGTERM', () => {
  driver.forceShutdown();
  plugin.forceShutdown();
});
