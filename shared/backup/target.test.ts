import { describe, expect, it } from 'vitest';
import { readSettingValue, readTarget } from '#shared/backup/target.ts';

const where = 'ConfigMap bullion-system/backup-target';
const s3 = { type: 's3', endpoint: 'https://store.example:9000', bucketName: 'images' };
const read = (fields: Record<string, unknown>, secret?: Record<string, string>) =>
  readTarget({ where, fields, secret });
const targetOf = (found: ReturnType<typeof read>) => (found.is === 'set' ? found.target : found);

describe('a backup target', () => {
  it('is a bucket, with surrounding spaces trimmed', () => {
    const found = read(
      {
        ...s3,
        endpoint: ' https://store.example:9000/ \n',
        bucketName: ' images\n',
        bucketRegion: ' eu-west-1 ',
        refreshIntervalInSeconds: '60',
      },
      { accessKeyId: ' key\n', secretKey: '\tsecret \n', sessionToken: ' token\n' },
    );
    expect(targetOf(found)).toMatchObject({
      type: 's3',
      name: 'https://store.example:9000/images',
      endpoint: 'https://store.example:9000',
      region: 'eu-west-1',
      bucket: 'images',
      pathStyle: true,
      refreshSeconds: 60,
      secret: { accessKeyId: ' key\n', secretKey: '\tsecret \n', sessionToken: ' token\n' },
    });
  });

  it.each([
    [{ ...s3, virtualHostedStyle: true }, { pathStyle: false }],
    [{ ...s3, virtualHostedStyle: 'true' }, { pathStyle: false }],
    [
      { type: 's3', bucketName: 'images', bucketRegion: 'eu-west-1' },
      { endpoint: 'https://s3.eu-west-1.amazonaws.com' },
    ],
    [
      { type: 'nfs', endpoint: 'nfs://10.0.0.1:/export/backups' },
      { type: 'nfs', server: '10.0.0.1', path: '/export/backups' },
    ],
    [{ type: 'nfs', endpoint: 'nas:/x' }, { name: 'nfs://nas:/x' }],
    [{ type: 'nfs', endpoint: 'nas:/x//' }, { name: 'nfs://nas:/x' }],
    [
      { type: 'nfs', endpoint: 'nas:/' },
      { name: 'nfs://nas:/', path: '/' },
    ],
  ])('is read from %o', (fields, expected) => {
    expect(targetOf(read(fields))).toMatchObject(expected);
  });

  it.each([
    [{ ...s3, endpoint: 'store.example' }, 'endpoint'],
    [{ ...s3, endpoint: 'https://me:pa55@store.example' }, 'endpoint'],
    [{ ...s3, endpoint: 'https://store.example?key=t0ken' }, 'endpoint'],
    [{ ...s3, bucketName: 'No Bucket' }, 'bucketName'],
    [{ ...s3, bucketName: '' }, 'bucketName'],
    [{ ...s3, bucketRegion: 'eu west' }, 'bucketRegion'],
    [{ ...s3, refreshIntervalInSeconds: '-1' }, 'refreshIntervalInSeconds'],
    [{ ...s3, cert: 'no PEM' }, 'cert'],
    [{ ...s3, accessKeyId: 'only' }, 'secretKey'],
    [{ ...s3, type: 'ftp' }, 'type "ftp"'],
    [{ type: 'nfs', endpoint: 'https://nas/x' }, 'nfs://<server>:/<path>'],
    [{ type: 'nfs', endpoint: 'nfs://nas:/a/../b' }, 'nfs://<server>:/<path>'],
    // Exports of different servers are mounted in separate folders.
    [{ type: 'nfs', endpoint: 'nfs://..:/etc' }, 'nfs://<server>:/<path>'],
    [{ ...s3, bucketName: {} }, 'texts'],
  ])('that cannot be used reports why: %o', (fields, words) => {
    const found = read(fields);
    expect(found).toMatchObject({ is: 'faulty', message: expect.stringContaining(words) });
    expect(JSON.stringify(found)).not.toMatch(/pa55|t0ken/);
  });

  it.each([[undefined], [''], ['  '], ['{}'], ['{"type":"","endpoint":""}']])('is not configured by %s', (value) => {
    expect(readSettingValue(value, undefined)).toEqual({ is: 'none' });
  });

  it('is read from the setting of Harvester, which may contain its keys', () => {
    const value = JSON.stringify({
      ...s3,
      accessKeyId: 'a',
      secretAccessKey: 'b',
      virtualHostedStyle: false,
      refreshIntervalInSeconds: 5,
    });
    expect(targetOf(readSettingValue(value, { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'y' }))).toMatchObject({
      secret: { accessKeyId: 'a', secretKey: 'b' },
      refreshSeconds: 5,
    });
    const stripped = JSON.stringify({ ...s3, accessKeyId: '', secretAccessKey: '' });
    expect(targetOf(readSettingValue(stripped, { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'y' }))).toMatchObject({
      secret: { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'y' },
    });
  });

  it.each(['no json', '[]', '"s3://x"'])('that is not a JSON object is reported without its text: %s', (value) => {
    const found = readSettingValue(value, undefined);
    expect(found).toEqual({ is: 'faulty', message: 'setting backup-target: its value is not a JSON object' });
  });

  it('has the same name whatever its credentials', () => {
    const [a, b] = ['one', 'two'].map((key) => read(s3, { accessKeyId: key, secretKey: key }));
    expect(a?.is === 'set' && b?.is === 'set' && a.target.name === b.target.name).toBe(true);
  });
});
