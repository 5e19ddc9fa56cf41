// Settings of import-object; the README table is generated from them.
import { z } from 'zod';
import { objectImportSettings } from '#shared/object-import/settings.ts';

export const Config = z.object(objectImportSettings);
