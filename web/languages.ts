/** The English name of a language: "de" is "German"; an unknown code stays. */
export function nameLanguage(code: string): string {
  try {
    const name = new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
    return name[0].toUpperCase() + name.slice(1);
  } catch {
    return code;
  }
}
