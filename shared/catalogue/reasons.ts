// Where the page of reasons and alerts is: `bullion explain` names it, and the site has it. The only place with this address.

/** Path of the page below the site. */
export const reasonsPath = 'reasons';
export const reasonsPage = `https://bullion.dev/${reasonsPath}`;

/** `Worker<Reason>` stands for several; its anchor needs no brackets. */
export const reasonAnchor = (name: string): string => name.replaceAll(/[<>]/g, '');

export const reasonAddress = (name: string): string => `${reasonsPage}#${reasonAnchor(name)}`;
