import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  flag,
  parseConfig,
  serverSettings,
  setting,
  settingRows,
  sinkSettings,
  wholeNumber,
} from '#shared/runtime/config.ts';
import type { InvalidInput } from '#shared/runtime/errors.ts';

const Config = z.object({
  ...serverSettings,
  ...sinkSettings,
  bucket: setting('BUCKET', 'Bucket that backups go to.', z.string()),
  attempts: setting('ATTEMPTS', 'How often to try.', wholeNumber(1, 9)),
  eager: setting('EAGER', 'Whether to hurry.', flag(false)),
});

const faultsOf = (environment: Record<string, string>) => {
  try {
    parseConfig(Config, environment);
    return [];
  } catch (error) {
    return (error as InvalidInput).faults.map(({ field }) => field);
  }
};

describe('parseConfig', () => {
  it('parses typed values and sets defaults', () => {
    expect(parseConfig(Config, { BUCKET: 'b', ATTEMPTS: '3', EAGER: '1', PORT: '0', K_SINK: '' })).toEqual({
      port: 0,
      host: '127.0.0.1',
      logLevel: 'info',
      bucket: 'b',
      attempts: 3,
      eager: true,
      sinkTokenFile: '/oidc/token',
    });
  });

  it('reports all errors at once, by the name of the variable', () => {
    expect(faultsOf({ PORT: 'http', LOG_LEVEL: 'loud', K_SINK: 'nowhere', EAGER: 'yes' })).toEqual([
      'PORT',
      'LOG_LEVEL',
      'K_SINK',
      'BUCKET',
      'ATTEMPTS',
      'EAGER',
    ]);
  });

  it('explains what a missing setting is for', () => {
    expect(() => parseConfig(Config, { ATTEMPTS: '3' })).toThrow(/BUCKET: is required. Bucket that backups go to./);
    expect(() => parseConfig(Config, { BUCKET: 'b' })).toThrow(/ATTEMPTS: is required. How often to try./);
  });
});

describe('settingRows', () => {
  it('returns the rows of a table', () => {
    expect(settingRows(Config).map(({ env, default: value }) => [env, value])).toEqual([
      ['PORT', '8080'],
      ['HOST', '127.0.0.1'],
      ['LOG_LEVEL', 'info'],
      ['K_SINK', ''],
      ['K_SINK_TOKEN_FILE', '/oidc/token'],
      ['BUCKET', undefined],
      ['ATTEMPTS', undefined],
      ['EAGER', 'false'],
    ]);
  });
});
