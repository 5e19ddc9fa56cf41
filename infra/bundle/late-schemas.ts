// Makes schemas, and fields of schemas, lazy: creating all of them took half of the evaluation at start, and a request needs only a few. Called
// by plugin.ts.

/** The module that exports `late` for the transformed sources. */
export const lateSchemaPath = 'bullion:late-schema';

/** A proxy for a schema that is created on first use. Schemas that contain it call it each time, which takes less than a tenth of a microsecond. */
export const lateSchemaModule = `export const late = (make) => {
  let made;
  const real = () => (made ??= make());
  return new Proxy({}, {
    get: (_, key) => real()[key],
    set: (_, key, value) => Reflect.set(real(), key, value),
    has: (_, key) => Reflect.has(real(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(real()),
    ownKeys: () => Reflect.ownKeys(real()),
    getOwnPropertyDescriptor: (_, key) => {
      const found = Reflect.getOwnPropertyDescriptor(real(), key);
      return found && { ...found, configurable: true };
    },
  });
};`;

/** A schema at the top level of a module, as printed by esbuild: on one line, or up to the first line that starts with the closing bracket. */
const schema = /^((?:export )?const \w+ = )((?:z|[A-Z]\w*(?=\.extend\())\.(?:.*|.*\n(?:[ \t}\])].*\n)*?[}\])].*));$/gm;

/** The same for fields that several schemas share: an object whose first field is a schema or a setting. */
const shape =
  /^((?:export )?const \w+ = )(\{\s+(?:\/\*\*.*\*\/\s+)?\w+: (?:z\.|setting\(|[A-Z]\w*\.optional\(|[A-Z]\w*\.describe\()(?:.*|.*\n(?:[ \t}\])].*\n)*?)\});$/gm;

/** Input is JavaScript printed by esbuild. */
export const withLateSchemas = (code: string): string => {
  const changed = code
    .replace(schema, (_, head: string, made: string) => `${head}/* @__PURE__ */ late(() => ${made});`)
    .replace(shape, (_, head: string, made: string) => `${head}/* @__PURE__ */ late(() => (${made}));`);
  return changed === code ? code : `import { late } from '${lateSchemaPath}';\n${changed}`;
};
