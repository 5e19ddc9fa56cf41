// The file an image starts with: runs the function its first argument names. Called by build.ts.

/** The text of `start.mjs`. Names are fixed when the image is made, so that an argument cannot name another file. */
export const launcher = (names: readonly string[]): string => `// Made by infra/bundle. node start.mjs <function>
const names = ${JSON.stringify(names)};
const name = process.argv[2];
if (!names.includes(name)) {
  process.stderr.write(\`start: \${name ?? 'nothing'} is no function of this image; it has \${names.join(', ')}\\n\`);
  process.exit(64);
}
await import(\`./\${name}.mjs\`);
`;
