// The part of CodeMirror's types that the console uses; the types themselves are in its packages.

export type Extension = { extension: Extension } | readonly Extension[];
export type Range = { from: number; to: number; empty: boolean; head: number; anchor: number };
export type Text = { length: number; lines: number; toString(): string; lineAt(at: number): Line; line(number: number): Line; sliceString(from: number, to?: number): string };
export type Line = { from: number; to: number; number: number; text: string };
export type Change = { from: number; to?: number; insert?: string };
export type Annotation = { value: unknown };
export type AnnotationType = { of(value: unknown): Annotation };
export type Effect = { value: unknown; is(type: EffectType<unknown>): boolean };
export type EffectType<T> = { of(value: T): Effect };
export type Spec = {
  changes?: Change | Change[]; selection?: { anchor: number; head?: number }; effects?: Effect | Effect[];
  annotations?: Annotation | Annotation[]; scrollIntoView?: boolean; userEvent?: string;
};
export type Tr = { docChanged: boolean; state: EditorState; effects: Effect[]; changes: unknown; annotation(type: AnnotationType): unknown; isUserEvent(event: string): boolean };
export type DecorationSet = { map(changes: unknown): DecorationSet };

export class EditorState {
  doc: Text;
  selection: { main: Range };
  update(spec: Spec): Tr;
  replaceSelection(text: string): Spec;
  field<T>(field: StateField<T>): T;
  static create(config: { doc: string; extensions: Extension[]; selection?: { anchor: number } }): EditorState;
  static tabSize: { of(value: number): Extension };
}
export class StateField<T> {
  extension: Extension;
  static define<T>(config: { create(state: EditorState): T; update(value: T, tr: Tr): T; provide?: (field: StateField<T>) => Extension }): StateField<T>;
}
export const StateEffect: { define<T>(): EffectType<T> };
export const Transaction: { remote: AnnotationType; addToHistory: AnnotationType; userEvent: AnnotationType };
export const Prec: { highest(extension: Extension): Extension };
export class EditorView {
  constructor(config: { state: EditorState; parent: HTMLElement; dispatchTransactions?: (trs: Tr[], view: EditorView) => void });
  state: EditorState;
  dom: HTMLElement;
  contentDOM: HTMLElement;
  scrollDOM: HTMLElement;
  hasFocus: boolean;
  dispatch(...specs: Spec[]): void;
  setState(state: EditorState): void;
  focus(): void;
  static decorations: { from(field: StateField<DecorationSet>): Extension };
  static updateListener: { of(listener: (update: { docChanged: boolean; selectionSet: boolean; state: EditorState; view: EditorView }) => void): Extension };
  static contentAttributes: { of(attributes: Record<string, string>): Extension };
  static theme(rules: Record<string, Record<string, string>>): Extension;
  static scrollIntoView(at: number, options?: { y: string }): Effect;
}
export const Decoration: {
  none: DecorationSet;
  mark(spec: { class: string; attributes?: Record<string, string> }): { range(from: number, to: number): unknown };
  line(spec: { class: string }): { range(at: number): unknown };
  set(ranges: unknown[]): DecorationSet;
};
export type Command = (view: EditorView) => boolean;
export type Binding = { key: string; run?: Command; shift?: Command; preventDefault?: boolean };
export const keymap: { of(bindings: readonly Binding[]): Extension };
export function drawSelection(): Extension;
export function highlightSpecialChars(): Extension;
export function lineNumbers(): Extension;
export function placeholder(text: string): Extension;
export const defaultKeymap: readonly Binding[];
export const historyKeymap: readonly Binding[];
export const searchKeymap: readonly Binding[];
export const closeBracketsKeymap: readonly Binding[];
export function history(): Extension;
export function search(config: { top: boolean }): Extension;
export const indentMore: Command;
export const indentLess: Command;
export const toggleComment: Command;
export const isolateHistory: AnnotationType;
export function bracketMatching(): Extension;
export function closeBrackets(): Extension;
export const HighlightStyle: { define(rules: { tag: unknown; class: string }[]): unknown };
export function syntaxHighlighting(style: unknown): Extension;
export const indentUnit: { of(unit: string): Extension };
export type CompletionContext = { state: EditorState; pos: number; explicit: boolean };
export type CompletionOption = { label: string; type?: string; detail?: string; boost?: number };
export type CompletionResult = { from: number; to: number; options: CompletionOption[]; filter: boolean };
export function autocompletion(config: {
  override: ((context: CompletionContext) => Promise<CompletionResult | null>)[]; defaultKeymap: boolean; interactionDelay: number;
  icons: boolean; activateOnTyping: boolean; maxRenderedOptions: number; optionClass: (option: CompletionOption) => string;
}): Extension;
export const acceptCompletion: Command;
export const closeCompletion: Command;
export const startCompletion: Command;
export function completionStatus(state: EditorState): "active" | "pending" | null;
export function moveCompletionSelection(forward: boolean): Command;
export const PostgreSQL: unknown;
export function sql(config: { dialect: unknown; upperCaseKeywords?: boolean }): Extension;
export const tags: Record<string, unknown>;
