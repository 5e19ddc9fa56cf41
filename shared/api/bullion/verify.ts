// Who must have signed a version: `spec.verify.signature` of a policy for golden images.
import { z } from 'zod';
import { ObjectName, QuantityValue, exactlyOne, withRules } from '#shared/api/kind.ts';
import { bootSigns } from '#shared/boot/report.ts';

const ConfigMapRef = z.object({ configMap: ObjectName.min(1).describe('name of a ConfigMap of this namespace') });

const CosignIdentity = z
  .object({
    issuer: z
      .string()
      .min(1)
      .max(1024)
      .describe('URL of the OpenID Connect provider that knew the signer, exactly as in the certificate'),
    subject: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .describe('who signed, exactly: an address, or the URL of a workflow'),
    subjectRegExp: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .describe('who signed, as a regular expression that must match all of it'),
  })
  .meta(
    withRules({
      rule: 'has(self.subject) != has(self.subjectRegExp)',
      message: 'exactly one of subject and subjectRegExp must be set',
    }),
  );

const CosignRule = z
  .object({
    keys: z
      .object({
        configMap: ObjectName.min(1).optional().describe('each of its entries holds one or more public keys in PEM'),
        inline: z.array(z.string().min(1).max(16_384)).min(1).max(16).optional().describe('public keys in PEM'),
      })
      .optional()
      .describe('public keys, of which one must have signed: ECDSA, RSA or Ed25519')
      .meta(
        withRules({
          rule: 'has(self.configMap) != has(self.inline)',
          message: 'exactly one of configMap and inline must be set',
        }),
      ),
    identities: z
      .array(CosignIdentity)
      .min(1)
      .max(16)
      .optional()
      .describe('signers without keys of their own, of which one must have signed; needs trustRoot'),
    attestations: z
      .array(z.string().min(1).max(1024))
      .min(1)
      .max(16)
      .optional()
      .describe(
        'predicate types that must be attested by the same signers, such as https://slsa.dev/provenance/v1 or https://spdx.dev/Document; left out: what is attested is recorded, and none is asked for',
      ),
    trustRoot: ConfigMapRef.optional().describe(
      'its entry trusted_root.json names the certificate authorities and transparency logs to trust; no public service is asked',
    ),
  })
  .describe('for images in a registry: a signature by cosign')
  .meta(
    withRules(
      { rule: 'has(self.keys) != has(self.identities)', message: 'exactly one of keys and identities must be set' },
      { rule: 'has(self.identities) == has(self.trustRoot)', message: 'identities and trustRoot are set together' },
    ),
  );
export type CosignRule = z.infer<typeof CosignRule>;

const Place = z.string().min(1).max(2048);
const checksums = Place.optional().describe(
  'checksum file that is signed: a URL, the name of a file beside the image, or what is added to the URL of the image, such as .sha256; default: checksumURL of the source',
);
const signature = Place.optional().describe(
  'detached signature of the checksum file: a URL, a name beside the image, or what is added to the URL of the checksum file, such as .gpg; default: within the file, or beside it',
);

const GpgRule = z
  .object({
    keys: ConfigMapRef.describe('each of its entries holds one or more public keys, armored, or binary in binaryData'),
    checksums,
    signature,
  })
  .describe(
    'for files over HTTP and in object stores: an OpenPGP signature of the checksum file. A signature of the image itself is not read',
  );
export type GpgRule = z.infer<typeof GpgRule>;

const MinisignRule = z
  .object({
    keys: ConfigMapRef.describe('each of its entries holds one public key of minisign or signify'),
    checksums,
    signature,
  })
  .describe('for files over HTTP and in object stores: a signature of the checksum file by minisign or signify');
type MinisignRule = z.infer<typeof MinisignRule>;

const signatures = { cosign: CosignRule.optional(), gpg: GpgRule.optional(), minisign: MinisignRule.optional() };

export const SignatureRule = z
  .object(signatures)
  .describe('who must have signed a version before it is offered: exactly one of the fields')
  .meta(
    withRules({
      rule: exactlyOne(...Object.keys(signatures)),
      message: 'exactly one of cosign, gpg and minisign must be set',
    }),
  );
export type SignatureRule = z.infer<typeof SignatureRule>;

export const Attestation = z
  .object({
    predicateType: z.string().describe('what it says, such as https://slsa.dev/provenance/v1'),
    digest: z.string().describe('of the attestation in the registry'),
    by: z.string().describe('fingerprint of the key, or identity and issuer'),
    signedAt: z.string().optional().describe('RFC 3339, where a log or a time stamp says it'),
  })
  .describe('what a signer of the policy attests of the image: provenance, a bill of materials');
export type Attestation = z.infer<typeof Attestation>;

// What a version must show when it is used: `spec.verify.checks` and `spec.verify.boot` of a policy for golden images.

const Quantities = z.record(z.string(), QuantityValue);
const KeyRef = z.object({
  name: ObjectName.min(1).describe('name of the object, in this namespace'),
  key: z.string().min(1).max(253).describe('which of its entries'),
});

const Variable = z.object({
  name: z.string().min(1).max(253).describe('name of the variable'),
  value: z.string().max(4096).optional().describe('its value'),
  valueFrom: z
    .object({
      secretKeyRef: KeyRef.optional().describe('an entry of a Secret'),
      configMapKeyRef: KeyRef.optional().describe('an entry of a ConfigMap'),
    })
    .optional()
    .describe('where its value is, in place of value'),
});

export const Check = z.object({
  name: ObjectName.min(1).max(63).describe('name of the check; neither signature nor boot'),
  image: z.string().min(1).max(1024).describe('image of its container'),
  command: z.array(z.string().max(8192)).max(64).optional().describe('what it runs; default: that of the image'),
  args: z.array(z.string().max(8192)).max(64).optional().describe('its arguments'),
  env: z
    .array(Variable)
    .max(64)
    .optional()
    .describe(
      'its environment. BULLION_DISK is the path of the disk: a file or a device. BULLION_VERSION and BULLION_DIGEST say what it holds',
    ),
  resources: z
    .object({ requests: Quantities.optional(), limits: Quantities.optional() })
    .optional()
    .describe('CPU and memory, as in a pod'),
  imagePullSecrets: z
    .array(z.object({ name: ObjectName.min(1).describe('name of a Secret of this namespace') }))
    .max(8)
    .optional()
    .describe('credentials for its image, beside those of the account default of the namespace'),
  timeout: z.string().optional().describe('the time it has once its pod is on a node, such as 90s or 1h; default: 10m'),
});
export type Check = z.infer<typeof Check>;

export const Boot = z
  .object({
    until: z
      .enum(bootSigns)
      .optional()
      .describe(
        'the sign that it has started. AgentConnected: its guest agent answers; Running: the machine runs for the time of runningFor; CloudInitFinished: its cloud-init has finished; ConsoleText: its serial console shows text; PortAnswers: its TCP port answers. Default: AgentConnected',
      ),
    text: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('with ConsoleText: what the serial console must show, exactly, such as login:'),
    port: z.int().min(1).max(65_535).optional().describe('with PortAnswers: which TCP port, such as 22'),
    timeout: z
      .string()
      .optional()
      .describe(
        'the time it has once the machine runs, such as 90s or 10m; default: 5m, and 15m where its processor is emulated',
      ),
    runningFor: z.string().optional().describe('with Running: how long the machine must run; default: 1m'),
    memory: QuantityValue.optional().describe('memory of the machine; default: 1Gi'),
    firmware: z.enum(['bios', 'efi']).optional().describe('what it starts by; default: bios'),
  })
  .describe(
    'it must start, on a throw-away clone, in a machine that reaches no network. AgentConnected and Running: a VirtualMachineInstance, where the cluster has KubeVirt; else, and for the other signs, a Job with QEMU, for x86-64 only',
  )
  .meta(
    withRules(
      {
        rule: "has(self.text) == (has(self.until) && self.until == 'ConsoleText')",
        message: 'text and until: ConsoleText must be set together',
      },
      {
        rule: "has(self.port) == (has(self.until) && self.until == 'PortAnswers')",
        message: 'port and until: PortAnswers must be set together',
      },
    ),
  );
export type Boot = z.infer<typeof Boot>;
