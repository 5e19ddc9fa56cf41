// The child process of durability.test.ts: writes objects as fast as it can and reports each once it is stored.
import { createStore } from './store.ts';

const [file = '', prefix = ''] = process.argv.slice(2);
const store = createStore({ file });
for (let index = 0; ; index += 1) {
  const name = `${prefix}-${index}`;
  const key = { collection: 'configmaps', namespace: 'default', name };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { index: String(index) } };
  const entry = store.create(key, object);
  if (entry === undefined) throw new Error(`${name} is taken`);
  process.stdout.write(`${name} ${entry.version}\n`);
  // Lets the pipe drain, so that every reported write is stored.
  await new Promise((resolve) => setImmediate(resolve));
}
